// A Bangla word is searched for by its stem, so that টোকেনগুলোর finds টোকেন, টোকেনের, টোকেনে: the site's search compares
// beginnings of words, and brings both sides to one spelling by itself. The same endings as in kotha.retrieval.stemming.
(() => {
  const ENDINGS = (
    "গুলোতে গুলোকে গুলোর গুলিতে গুলিকে গুলির গুলো গুলি দেরকে েদের দের েরা রা " +
    "টিতে টিকে টির টি টায় টাকে টার টা য়ের য়ে ের েতে কে তে র ে য় ও ই"
  )
    .normalize("NFC")
    .split(" ")
    .sort((one, other) => other.length - one.length);
  const LEAST = 3; // signs that must be left of a word

  function stem(word) {
    const ending = ENDINGS.find((each) => word.endsWith(each) && word.length - each.length >= LEAST);
    return ending ? word.slice(0, -ending.length) : word;
  }

  function folded(query) {
    return query.normalize("NFC").replace(/[\u0980-\u09ff\u200c\u200d]+/g, stem);
  }

  const QUERY = 2; // what the search's worker calls a question
  const send = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message && message.type === QUERY && message.data && typeof message.data.input === "string") {
      message = { ...message, data: { ...message.data, input: folded(message.data.input) } };
    }
    return send.call(this, message, ...rest);
  };
})();
