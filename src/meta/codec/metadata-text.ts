/** Cuts the metadata out of the JSON of an object without parsing it: lists of metadata and Tables need nothing else. */

const METADATA = '"metadata":'
const MANAGED_FIELDS = '"managedFields":['
const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c]
const [OPENING, CLOSING, OPENING_LIST, CLOSING_LIST] = [0x7b, 0x7d, 0x5b, 0x5d]

export interface MetadataTextOptions {
  readonly omitsManagedFields?: boolean
}

/** `"metadata":{…}` of a canonical body, which begins with it. Undefined for other texts. */
export function metadataText(
  body: string,
  { omitsManagedFields = false }: MetadataTextOptions = {},
): string | undefined {
  if (!body.startsWith(METADATA) || body.charCodeAt(METADATA.length) !== OPENING) return undefined
  let cut: Cut | undefined
  for (let at = METADATA.length + 1; at < body.length; at++) {
    const code = body.charCodeAt(at)
    if (code === CLOSING) return without(body.slice(0, at + 1), cut)
    if (code === OPENING || code === OPENING_LIST) at = lastOfValue(body, at)
    else if (code === QUOTE) {
      // Only a member of the metadata itself: labels may have the same name.
      const isOmitted = omitsManagedFields && body.startsWith(MANAGED_FIELDS, at)
      const last = isOmitted ? lastOfValue(body, at + MANAGED_FIELDS.length - 1) : endOfString(body, at)
      if (isOmitted) cut = { from: at, to: last + 1 }
      at = last
    }
  }
  return undefined
}

interface Cut {
  readonly from: number
  readonly to: number
}

/** Without the member at `cut`, and one of the commas around it. */
function without(text: string, cut: Cut | undefined): string {
  if (cut === undefined) return text
  const { from, to } = cut
  if (text.charCodeAt(from - 1) === COMMA) return text.slice(0, from - 1) + text.slice(to)
  return text.slice(0, from) + text.slice(text.charCodeAt(to) === COMMA ? to + 1 : to)
}

/** The index of the last character of the object or list that begins at `start`; the length of a text that ends before. */
function lastOfValue(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === OPENING || code === OPENING_LIST) depth++
    else if ((code === CLOSING || code === CLOSING_LIST) && --depth === 0) return at
  }
  return text.length
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
