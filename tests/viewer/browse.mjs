// Opens a page in headless Chromium, does what it is told, and prints what it sees as JSON.
// node browse.mjs NODE_MODULES URL '[["press", "2"], ["text", "main"], …]'
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const [, , modules, url, steps] = process.argv
const find = createRequire(`${modules}/`)
const { default: chromium } = await import(pathToFileURL(find.resolve("@sparticuz/chromium")))
const { chromium: engine } = find("playwright-core")
const browser = await engine.launch({ executablePath: await chromium.executablePath(), args: chromium.args })
const page = await browser.newPage({ viewport: { width: 1100, height: 700 } })
const seen = { problems: [], requests: [], answers: [] }
page.on("console", message => seen.problems.push(message.text()))
page.on("pageerror", error => seen.problems.push(error.message))
page.on("dialog", dialog => { seen.problems.push(`dialog: ${dialog.message()}`); dialog.dismiss() })
page.on("request", request => seen.requests.push(request.url()))
const begun = Date.now()
await page.goto(url)
await page.waitForSelector("main h1")
seen.milliseconds = Date.now() - begun
for (const [verb, ...words] of JSON.parse(steps)) {
  if (verb === "press") await page.keyboard.press(words[0])
  else if (verb === "type") await page.keyboard.type(words[0])
  else if (verb === "click") await page.getByRole("button", { name: words[0] }).first().click()
  else if (verb === "wait") await page.waitForFunction(text => document.body.innerText.includes(text), words[0])
  else if (verb === "shoot") await page.screenshot({ path: words[0] })
  else if (verb === "count") seen.answers.push(await page.locator(words[0]).count())
  else if (verb === "focused") seen.answers.push(await page.evaluate(() => document.activeElement.textContent))
  else seen.answers.push(await page.textContent(words[0]))
}
await browser.close()
console.log(JSON.stringify(seen))
