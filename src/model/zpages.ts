/** The pages /statusz and /flagz of a component: its version and flags, as text or as an object of `config.k8s.io`. */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Random } from '#lib/random.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import { type AcceptClause, parseAccept } from '#meta/codec/accept.ts'
import { failure } from '#meta/status-errors.ts'
import { timeOf } from '#meta/time.ts'

const API_SERVER = 'kube-apiserver'
const GROUP = 'config.k8s.io'
const VERSIONS: ReadonlySet<string> = new Set(['v1alpha1', 'v1beta1'])
const DELIMITERS = [':', ': ', '=', ' ']
const HEADER = (component: string, page: string): string =>
  `\n${component} ${page}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n`

/** Paths for API clients, which are no debugging pages. */
const NOT_FOR_DEBUGGING: ReadonlySet<string> = new Set(['/apis', '/api', '/openid', '/openapi', '/.well-known'])

export interface ZPagesOptions {
  /** The component; the API server by default. */
  readonly component?: string
  readonly clock: Clock
  readonly random: Random
  readonly isEnabled: (gate: string) => boolean
  /** The start time of the process, in milliseconds since 1970. */
  readonly startedAtMs: number
  readonly version: {
    readonly gitVersion: string
    readonly goVersion: string
    readonly emulated: string
  }
  /** All paths. */
  readonly paths: () => readonly string[]
  /** By name, as text, without secrets. */
  readonly flags: ReadonlyMap<string, string>
}

interface Page {
  readonly component: string
  readonly kind: string
  readonly text: () => string
  readonly fields: () => object
}

/** A page as sent. */
export interface ZPage {
  readonly status: number
  readonly contentType: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Returns undefined for other paths, and for pages whose gate is off. `accept` is the Accept header; throws StatusError
 * 406.
 */
export type ZPages = (path: string, accept: string) => ZPage | undefined

export function createZPages(options: ZPagesOptions): ZPages {
  const delimiter = DELIMITERS[options.random.int(DELIMITERS.length)] ?? ':'
  const pages = new Map<string, Page>()
  if (options.isEnabled('ComponentStatusz')) pages.set('/statusz', statusPage(options, delimiter))
  if (options.isEnabled('ComponentFlagz')) pages.set('/flagz', flagsPage(options, delimiter))
  return (path, accept) => {
    const page = pages.get(path)
    return page && show(page, accept)
  }
}

function statusPage(options: ZPagesOptions, delimiter: string): Page {
  const { clock, startedAtMs, version, paths, component = API_SERVER } = options
  const upSeconds = (): number => Math.max(0, Math.floor((clock.now() - startedAtMs) / 1000))
  const folders = (): string[] => foldersOf(paths())
  const binary = version.gitVersion.replace(/^v/, '')
  const lines = (): string[] => [
    `Started${delimiter} ${unixDate(startedAtMs)}`,
    `Up${delimiter} ${uptimeText(upSeconds())}`,
    `Go version${delimiter} ${version.goVersion}`,
    `Binary version${delimiter} ${binary}`,
    `Emulation version${delimiter} ${version.emulated}`,
    `Paths${delimiter} ${folders().join(' ')}`,
  ]
  return {
    component,
    kind: 'Statusz',
    text: () => `${HEADER(component, 'statusz')}\n${lines().join('\n')}\n`,
    fields: () => ({
      startTime: timeOf(startedAtMs),
      uptimeSeconds: upSeconds(),
      goVersion: version.goVersion,
      binaryVersion: binary,
      emulationVersion: version.emulated,
      paths: folders(),
    }),
  }
}

function flagsPage({ flags, component = API_SERVER }: ZPagesOptions, delimiter: string): Page {
  const sorted = [...flags].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    component,
    kind: 'Flagz',
    text: () => HEADER(component, 'flagz') + sorted.map(([name, value]) => `${name}${delimiter}${value}\n`).join(''),
    fields: () => (sorted.length === 0 ? {} : { flags: Object.fromEntries(sorted) }),
  }
}

/** Throws StatusError 406. */
function show(page: Page, accept: string): ZPage {
  const clauses = accept.trim() === '' ? [ANYTHING] : parseAccept(accept)
  for (const clause of clauses) {
    if (acceptsText(clause)) return { status: 200, contentType: 'text/plain; charset=utf-8', body: page.text() }
    const form = ['json', 'yaml'].find((one) => acceptsForm(clause, one, page.kind))
    if (form !== undefined) return structured(page, { form, version: clause.params.get('v') ?? '' })
  }
  const message = 'only the following media types are accepted: application/json, application/yaml, text/plain'
  throw failure({ code: 406, reason: 'NotAcceptable', message })
}

const ANYTHING: AcceptClause = { type: '*', subtype: '*', quality: 1, params: new Map() }

function acceptsText({ type, subtype, params }: AcceptClause): boolean {
  const isText = (type === '*' && subtype === '*') || (type === 'text' && (subtype === '*' || subtype === 'plain'))
  return isText && !['as', 'g', 'v'].some((name) => params.has(name))
}

function acceptsForm({ type, subtype, params }: AcceptClause, form: string, kind: string): boolean {
  const isForm = (type === '*' && subtype === '*') || (type === 'application' && (subtype === '*' || subtype === form))
  const isKind = params.get('as') === kind && params.get('g') === GROUP && VERSIONS.has(params.get('v') ?? '')
  return isForm && isKind
}

function structured(
  { component, kind, fields }: Page,
  { form, version }: { readonly form: string; readonly version: string },
): ZPage {
  const object = { kind, apiVersion: `${GROUP}/${version}`, metadata: { name: component }, ...fields() }
  const text = `This version of the ${kind.toLowerCase()} endpoint is deprecated. Please use a newer version.`
  return {
    status: 200,
    contentType: `application/${form}`,
    body: form === 'yaml' ? stringifyYaml(object) : `${JSON.stringify(object)}\n`,
    ...(version === 'v1alpha1' && { headers: { Warning: `299 - ${goQuote(text)}` } }),
  }
}

function foldersOf(paths: readonly string[]): string[] {
  const folders = new Set(paths.map((path) => `/${path.split('/')[1] ?? ''}`))
  return [...folders].filter((folder) => folder !== '/' && !NOT_FOR_DEBUGGING.has(folder)).sort()
}

/** Go's `Mon Jan _2 15:04:05 MST 2006`. */
function unixDate(ms: number): string {
  const [day = '', date = '', month = '', year = '', time = ''] = new Date(ms).toUTCString().replace(',', '').split(' ')
  return `${day} ${month} ${String(Number(date)).padStart(2)} ${time} UTC ${year}`
}

function uptimeText(seconds: number): string {
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`
}
