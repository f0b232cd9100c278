// Asks with a provider's Node SDK: an array of histories on standard input, an array of texts on standard output.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [sdks, api, url, how] = process.argv.slice(2);
const require = createRequire(sdks + "/");
const stream = how === "streamed";
const histories = JSON.parse(readFileSync(0));

async function join(pieces, text) {
  let said = "";
  for await (const piece of pieces) said += text(piece) ?? "";
  return said;
}

const asks = {
  chat: () => {
    const OpenAI = require("openai").default;
    const client = new OpenAI({ apiKey: "none", baseURL: url + "/v1", maxRetries: 0 });
    return async (messages) => {
      const reply = await client.chat.completions.create({ model: "fake", messages, stream });
      return stream ? join(reply, (each) => each.choices[0].delta.content) : reply.choices[0].message.content;
    };
  },
  responses: () => {
    const OpenAI = require("openai").default;
    const client = new OpenAI({ apiKey: "none", baseURL: url + "/v1", maxRetries: 0 });
    return async (input) => {
      const reply = await client.responses.create({ model: "fake", input, stream });
      return stream ? join(reply, (each) => each.delta) : reply.output_text;
    };
  },
  messages: () => {
    const Anthropic = require("@anthropic-ai/sdk").default;
    const client = new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0 });
    return async (messages) => {
      const reply = await client.messages.create({ model: "fake-claude", max_tokens: 100, messages, stream });
      return stream ? join(reply, (each) => each.delta?.text) : reply.content[0].text;
    };
  },
  contents: () => {
    const { GoogleGenAI } = require("@google/genai");
    const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: url } });
    return async (contents) => {
      const asked = { model: "fake-gemini", contents };
      if (stream) return join(await client.models.generateContentStream(asked), (each) => each.text);
      return (await client.models.generateContent(asked)).text;
    };
  },
};

const ask = asks[api]();
const said = [];
for (const history of histories) {
  try {
    said.push(await ask(history));
  } catch (error) {
    said.push(`raises ${error.constructor.name}`);
  }
}
console.log(JSON.stringify(said));
