/**
 * Rewrites the links of an HTML page as a stream. Only attribute values with links change; all other bytes pass
 * unchanged, and at most one tag is buffered. Assumes UTF-8 or another ASCII superset.
 */

/** Elements and attributes that contain links, as in upstream's proxy. */
const LINKS: ReadonlyMap<string, readonly string[]> = new Map(
  `a:href applet:codebase area:href audio:src base:href blockquote:cite body:background button:formaction command:icon
   del:cite embed:src form:action frame:longdesc,src head:profile html:manifest iframe:longdesc,src
   img:longdesc,src,usemap input:src,usemap,formaction ins:cite link:href object:classid,codebase,data,usemap q:cite
   script:src source:src video:poster,src`
    .split(/\s+/)
    .map((entry) => {
      const [element = '', attributes = ''] = entry.split(':')
      return [element, attributes.split(',')]
    }),
)

/** Elements whose content is not markup. */
const RAW: ReadonlySet<string> = new Set([
  'script',
  'style',
  'textarea',
  'title',
  'xmp',
  'iframe',
  'noembed',
  'noframes',
])

/** Longer tags pass unchanged. */
const MAX_TAG_BYTES = 16 << 10

/** The page with rewritten links, as a stream. */
export async function* rewriteHtml(
  page: AsyncIterable<Buffer>,
  rewrite: (link: string) => string,
): AsyncGenerator<Buffer> {
  const scanner = new HtmlScanner(rewrite)
  for await (const piece of page) {
    const done = scanner.push(piece.toString('latin1'))
    if (done !== '') yield Buffer.from(done, 'latin1')
  }
  const rest = scanner.end()
  if (rest !== '') yield Buffer.from(rest, 'latin1')
}

/** Text is latin1 throughout: one character per byte, whatever the page's encoding. */
class HtmlScanner {
  readonly #rewrite: (link: string) => string
  /** A possibly incomplete token. */
  #buffered = ''
  /** The open raw-text element. */
  #raw = ''

  constructor(rewrite: (link: string) => string) {
    this.#rewrite = rewrite
  }

  push(text: string): string {
    const source = this.#buffered + text
    this.#buffered = ''
    let out = ''
    let at = 0
    while (at < source.length) {
      const next = this.#next(source, at)
      if (next === undefined) {
        this.#buffered = source.slice(at)
        return this.#buffered.length > MAX_TAG_BYTES ? out + this.end() : out
      }
      out += next.text
      at = next.end
    }
    return out
  }

  end(): string {
    const rest = this.#buffered
    this.#buffered = ''
    return rest
  }

  /** The token at `at` and its end; undefined if it is incomplete. */
  #next(source: string, at: number): { readonly text: string; readonly end: number } | undefined {
    if (source[at] !== '<') {
      const open = source.indexOf('<', at)
      const end = open < 0 ? source.length : open
      return { text: source.slice(at, end), end }
    }
    if (this.#raw !== '') return this.#rawText(source, at)
    if (source.startsWith('<!--', at)) return through(source, at, source.indexOf('-->', at + 4), 3)
    if (source.length - at < 4 && '<!--'.startsWith(source.slice(at))) return undefined
    if (!/[a-z]/i.test(source[at + 1] ?? '')) return this.#noStartTag(source, at)
    const end = tagEnd(source, at)
    if (end < 0) return undefined
    return { text: this.#startTag(source.slice(at, end)), end }
  }

  /** A `<` inside a raw-text element: its closing tag, or plain text. */
  #rawText(source: string, at: number): { readonly text: string; readonly end: number } | undefined {
    const closing = `</${this.#raw}`
    const found = source.slice(at, at + closing.length).toLowerCase()
    if (found.length < closing.length && closing.startsWith(found)) return undefined
    if (found !== closing) return { text: '<', end: at + 1 }
    this.#raw = ''
    return { text: source.slice(at, at + closing.length), end: at + closing.length }
  }

  #noStartTag(source: string, at: number): { readonly text: string; readonly end: number } | undefined {
    const next = source[at + 1]
    if (next === undefined) return undefined
    if (next === '/' || next === '!' || next === '?') return through(source, at, source.indexOf('>', at), 1)
    return { text: '<', end: at + 1 }
  }

  #startTag(tag: string): string {
    const name = (/^<([^\s/>]+)/.exec(tag)?.[1] ?? '').toLowerCase()
    if (RAW.has(name) && !tag.endsWith('/>')) this.#raw = name
    const attributes = LINKS.get(name)
    return attributes === undefined ? tag : rewriteTag(tag, attributes, this.#rewrite)
  }
}

function through(source: string, at: number, mark: number, length: number): { text: string; end: number } | undefined {
  return mark < 0 ? undefined : { text: source.slice(at, mark + length), end: mark + length }
}

/** The index after the `>` that ends the tag at `at`, ignoring quoted ones; -1 if it is incomplete. */
function tagEnd(source: string, at: number): number {
  let quote = ''
  let isValue = false
  for (let index = at + 1; index < source.length; index++) {
    const char = source[index] as string
    if (quote !== '') quote = char === quote ? '' : quote
    else if (isValue && (char === '"' || char === "'")) quote = char
    else if (char === '>') return index + 1
    isValue = char === '=' || (isValue && /\s/.test(char))
  }
  return -1
}

interface Attribute {
  readonly name: string
  readonly value: string
  /** The range of the value with its quotes. */
  readonly start: number
  readonly end: number
}

/** The attributes of a start tag that have values. One pass, because a page's author may be hostile. */
function attributesOf(tag: string): Attribute[] {
  const found: Attribute[] = []
  let at = 0
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const text = pattern.exec(tag)?.[0] ?? ''
    at += text.length
    return text
  }
  take(/<[^\s/>]*/y)
  while (at < tag.length) {
    take(/[\s/>]*/y)
    const name = take(/=?[^\s/>=]*/y)
    take(/\s*/y)
    if (tag[at] !== '=') continue
    at++
    take(/\s*/y)
    const start = at
    const text = take(/"[^"]*"|'[^']*'|[^\s>]*/y)
    const isQuoted = text.startsWith('"') || text.startsWith("'")
    found.push({ name, value: isQuoted ? text.slice(1, -1) : text, start, end: at })
  }
  return found
}

function rewriteTag(tag: string, attributes: readonly string[], rewrite: (link: string) => string): string {
  let out = ''
  let at = 0
  for (const { name, value, start, end } of attributesOf(tag)) {
    if (!attributes.includes(name.toLowerCase())) continue
    const link = textOf(value)
    const next = rewrite(link)
    if (next === link) continue
    out += `${tag.slice(at, start)}"${escape(Buffer.from(next).toString('latin1'))}"`
    at = end
  }
  return out + tag.slice(at)
}

function textOf(value: string): string {
  return Buffer.from(unescape(value), 'latin1').toString()
}

/** The entities that occur in links. */
function unescape(value: string): string {
  return value
    .replaceAll(/&(?:quot|#34|#x22);/gi, '"')
    .replaceAll(/&(?:apos|#39|#x27);/gi, "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll(/&(?:amp|#38|#x26);/gi, '&')
}

function escape(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('"', '&#34;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
