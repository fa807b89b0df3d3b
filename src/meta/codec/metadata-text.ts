/** Cuts the metadata out of the JSON of an object without parsing it: lists of metadata and Tables need nothing else. */

const METADATA = '"metadata":'
const MANAGED_FIELDS = '"managedFields":'
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
  const end = endOfValue(body, METADATA.length)
  if (end === undefined) return undefined
  const text = body.slice(0, end)
  return omitsManagedFields ? withoutManagedFields(text) : text
}

/** Only the member of the metadata itself: labels may have the same name. */
function withoutManagedFields(text: string): string {
  for (let at = METADATA.length + 1; at < text.length - 1; at++) {
    const code = text.charCodeAt(at)
    if (code === OPENING || code === OPENING_LIST) at = (endOfValue(text, at) ?? text.length) - 1
    else if (code === QUOTE) {
      if (text.startsWith(MANAGED_FIELDS, at)) return cutMember(text, at)
      at = endOfString(text, at)
    }
  }
  return text
}

/** Without the member that begins at `start`, and one of the commas around it. */
function cutMember(text: string, start: number): string {
  const end = endOfValue(text, start + MANAGED_FIELDS.length)
  if (end === undefined) return text
  if (text.charCodeAt(start - 1) === COMMA) return text.slice(0, start - 1) + text.slice(end)
  return text.slice(0, start) + text.slice(text.charCodeAt(end) === COMMA ? end + 1 : end)
}

/** The index behind the object or list that begins at `start`. Undefined if the text ends before. */
function endOfValue(text: string, start: number): number | undefined {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === OPENING || code === OPENING_LIST) depth++
    else if ((code === CLOSING || code === CLOSING_LIST) && --depth === 0) return at + 1
    else if (depth === 0) return undefined
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
