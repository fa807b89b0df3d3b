/** Creates requests to routes of the management server for tests, without a socket. */
import { randomFillSync } from 'node:crypto'

import type { Exchange } from '#lib/http/exchange.ts'
import type { People } from '#management/people/people.ts'
import type { Reply, Route } from '#management/port/route.ts'
import { failure } from '#meta/status-errors.ts'
import { type Status, statusOf } from '#meta/status.ts'

export interface TestRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  /** A body that is not JSON. */
  readonly text?: string
  readonly address?: string
  readonly upgradeProtocol?: string
  /** Default: those of `headers`. */
  readonly rawHeaders?: readonly string[]
}

export const TEST_HOST = 'hk.example.com'

/** The parts of an exchange that authentication and routes read. */
export function testExchange(request: TestRequest = {}): Exchange {
  const {
    method = 'GET',
    path = '/',
    headers = {},
    address = '10.0.0.1',
    upgradeProtocol,
    rawHeaders,
    text = '',
  } = request
  return {
    version: '1.1',
    method,
    path,
    authority: TEST_HOST,
    headers,
    rawHeaders: rawHeaders ?? Object.entries(headers).flat(),
    peer: { address },
    upgradeProtocol,
    readBody: () => Promise.resolve(Buffer.from(text)),
  } as unknown as Exchange
}

export interface TestAnswer {
  readonly status: number
  /** Parsed JSON, or the text of a page. */
  readonly body: Record<string, unknown>
  readonly text: string
  /** All values of a header. */
  values(name: string): string[]
}

/** Sends one request to the routes, as the port does: match, authenticate, check the initial password, serve. */
export async function sendTo(people: People, request: TestRequest): Promise<TestAnswer> {
  try {
    return answerOf(await serve(people, request))
  } catch (error) {
    const status: Status | undefined = statusOf(error)
    if (status === undefined) throw error
    const retry = status.details?.retryAfterSeconds
    const headers = retry === undefined ? [] : ['Retry-After', String(retry)]
    return answerOf({ status: status.code ?? 500, headers, body: status })
  }
}

async function serve(people: People, request: TestRequest): Promise<Reply> {
  const exchange = testExchange(request)
  const url = new URL(exchange.path, `https://${TEST_HOST}`)
  const { route, params } = findRoute(people.routes, exchange.method, url.pathname)
  const { address } = exchange.peer
  const person = route.access === 'person' ? await people.authenticate(exchange, address) : undefined
  if (route.access === 'person' && person === undefined) throw failure({ code: 401, message: 'Unauthorized' })
  if (person?.user.spec.mustChangePassword === true && route.allowsInitialPassword !== true) {
    throw failure({ code: 403, message: 'Change the password first' })
  }
  const readBody = async (): Promise<Record<string, unknown>> => ({ ...request.body })
  const auditId = randomFillSync(Buffer.alloc(8)).toString('hex')
  return route.serve({ exchange, params, rest: '', query: url.searchParams, person, address, auditId, readBody })
}

function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): { readonly route: Route; readonly params: Record<string, string> } {
  for (const route of routes) {
    const pattern = route.path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')
    const found = route.method === method ? new RegExp(`^${pattern}$`).exec(path) : null
    if (found !== null) return { route, params: { ...found.groups } }
  }
  throw failure({ code: 404, message: `No route for ${method} ${path}` })
}

function answerOf(reply: Reply): TestAnswer {
  if ('served' in reply) throw new Error('The route served the exchange itself')
  const { status, headers = [], body } = reply
  const isText = typeof body === 'string'
  return {
    status,
    body: isText || body === undefined ? {} : (JSON.parse(JSON.stringify(body)) as Record<string, unknown>),
    text: isText ? body : JSON.stringify(body ?? null),
    values: (name) => headers.filter((_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === name.toLowerCase()),
  }
}

/** A browser with one page of the server open: it keeps cookies and sends what our pages send. */
export class TestBrowser {
  readonly #people: People
  readonly #cookies = new Map<string, string>()
  readonly address: string

  constructor(people: People, address = '10.0.0.1') {
    this.#people = people
    this.address = address
  }

  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  set(name: string, value: string): void {
    this.#cookies.set(name, value)
  }

  async send(method: string, path: string, body?: object): Promise<TestAnswer> {
    const own = { 'sec-fetch-site': 'same-origin', 'x-hk': '1' }
    const headers = { ...own, ...(this.#cookies.size > 0 && { cookie: this.cookie }) }
    const request = { method, path, headers, address: this.address, ...(body !== undefined && { body }) }
    const answer = await sendTo(this.#people, request)
    for (const line of answer.values('Set-Cookie')) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return answer
  }

  logIn(username: string, password: string): Promise<TestAnswer> {
    return this.send('POST', '/v3-public/login', { username, password })
  }
}
