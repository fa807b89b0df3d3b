/** A minimal browser for log-in tests: follows redirects, keeps cookies by origin, and submits forms. */
import { request } from 'node:https'

export interface Visit {
  readonly url: string
  readonly status: number
  readonly text: string
}

const MAX_REDIRECTS = 20

export class Visitor {
  readonly #ca: readonly string[]
  /** By origin, then by name. */
  readonly #cookies = new Map<string, Map<string, string>>()

  constructor(ca: readonly string[]) {
    this.#ca = ca
  }

  get(url: string): Promise<Visit> {
    return this.#follow({ method: 'GET', url })
  }

  post(url: string, fields: Readonly<Record<string, string>>): Promise<Visit> {
    return this.#follow({ method: 'POST', url, body: new URLSearchParams(fields).toString() })
  }

  async #follow(first: Sent): Promise<Visit> {
    let sent = first
    for (let times = 0; times < MAX_REDIRECTS; times++) {
      const { status, location, text } = await this.#send(sent)
      if (location === undefined || status < 300 || status > 399) return { url: sent.url, status, text }
      sent = { method: 'GET', url: new URL(location, sent.url).href }
    }
    throw new Error(`Too many redirects from ${first.url}`)
  }

  async #send({ method, url, body }: Sent): Promise<Received> {
    const { origin } = new URL(url)
    const jar = this.#cookies.get(origin) ?? new Map<string, string>()
    this.#cookies.set(origin, jar)
    const headers = {
      accept: 'text/html',
      ...(jar.size > 0 && { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') }),
      ...(body !== undefined && {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(body),
      }),
    }
    const { promise, resolve, reject } = Promise.withResolvers<Received>()
    const outgoing = request(url, { method, headers, ca: [...this.#ca], agent: false }, (response) => {
      for (const line of response.headers['set-cookie'] ?? []) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '' || /max-age=0/i.test(line)) jar.delete(name)
        else jar.set(name, value)
      }
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, location: response.headers.location, text }))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
    return promise
  }
}

interface Sent {
  readonly method: string
  readonly url: string
  readonly body?: string
}

interface Received {
  readonly status: number
  readonly location: string | undefined
  readonly text: string
}
