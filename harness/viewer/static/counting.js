// The whole of a session, and how far it was read while somebody waits for it.

const EVERY = 500; // milliseconds between looks

// What the server says of the whole; `say` is called with words for who waits.
export async function counted(get, say) {
  let timer = 0;
  const look = async () => {
    try {
      const { done, total } = await get("/counting");
      if (timer && total) say(`Counting… ${Math.floor((100 * done) / total)} %`);
    } catch (error) {
      if (timer) say(error.message);
    }
    if (timer) timer = setTimeout(look, EVERY);
  };
  timer = setTimeout(look, EVERY);
  try {
    return await get("?html=1");
  } finally {
    clearTimeout(timer);
    timer = 0;
  }
}
