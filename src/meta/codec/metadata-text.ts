/** Cuts the metadata out of the JSON of an object without parsing it: lists of metadata and Tables need nothing else. */

const METADATA = '"metadata":'
const [QUOTE, BACKSLASH, OPENING, CLOSING] = [0x22, 0x5c, 0x7b, 0x7d]

/** `"metadata":{…}` of a canonical body, which begins with it. Undefined for other texts. */
export function metadataText(body: string): string | undefined {
  if (!body.startsWith(METADATA) || body.charCodeAt(METADATA.length) !== OPENING) return undefined
  let depth = 0
  for (let at = METADATA.length; at < body.length; at++) {
    const code = body.charCodeAt(at)
    if (code === QUOTE) at = endOfString(body, at)
    else if (code === OPENING) depth++
    else if (code === CLOSING && --depth === 0) return body.slice(0, at + 1)
  }
  return undefined
}

/** The index of the closing quote. */
function endOfString(text: string, opening: number): number {
  for (let at = text.indexOf('"', opening + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return at
  }
  return text.length
}
