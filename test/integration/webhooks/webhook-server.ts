/** A webhook server for tests: HTTPS, responses scripted by path, and a record of its requests. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority, type IssuePlan } from '#lib/x509/authority.ts'

type Json = Record<string, unknown>

/** One question, with the review in it. */
export interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly review: Json
  /** Common name of the client's certificate; empty when the client shows none. */
  readonly clientName: string
}

/** The answer to a review; what is returned is sent as JSON, nothing when it answers by itself. */
export type Script = (asked: Asked, response: ServerResponse) => unknown

export interface WebhookServer extends AsyncDisposable {
  readonly port: number
  /** PEM of whom to trust. */
  readonly ca: string
  /** The same as configurations have it. */
  readonly caBundle: string
  /** Every question so far, oldest first. */
  readonly asked: Asked[]
  /** Connections that are open now, and all that ever were. */
  readonly open: ReadonlySet<Socket>
  readonly connections: number
  on(path: string, script: Script): void
  url(path: string): string
  close(): Promise<void>
}

const authority = createAuthority({ commonName: 'webhooks' }, { clock: realClock, random: secureRandom })

export const NAMES: NonNullable<IssuePlan['names']> = { dns: ['localhost', 'hook.default.svc'], ips: ['127.0.0.1'] }

/** Clients may show any certificate, or none. */
const CLIENT_CERTIFICATES = { requestCert: true, rejectUnauthorized: false }

export async function startWebhookServer(names: IssuePlan['names'] = NAMES): Promise<WebhookServer> {
  const plan: IssuePlan = { commonName: 'hook', purpose: 'server', ...(names !== undefined && { names }) }
  const { certificatePem, keyPem } = authority.issue(plan)
  const scripts = new Map<string, Script>()
  const asked: Asked[] = []
  const open = new Set<Socket>()
  let connections = 0
  const server: Server = createServer(
    { cert: certificatePem, key: keyPem, ...CLIENT_CERTIFICATES },
    (request, response) => {
      void answer(request, response, scripts, asked)
    },
  )
  server.on('secureConnection', (socket) => {
    connections++
    open.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => open.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return {
    port,
    ca: authority.certificatePem,
    caBundle: Buffer.from(authority.certificatePem).toString('base64'),
    asked,
    open,
    get connections() {
      return connections
    },
    on: (path, script) => void scripts.set(path, script),
    url: (path) => `https://127.0.0.1:${port}${path}`,
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  scripts: ReadonlyMap<string, Script>,
  asked: Asked[],
): Promise<void> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  const text = Buffer.concat(pieces).toString()
  const { method = '', url = '', headers } = request
  const review = text === '' ? {} : (JSON.parse(text) as Json)
  const clientName = [(request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? ''].flat().join()
  const one: Asked = { method, url, headers, text, review, clientName }
  asked.push(one)
  const script = scripts.get(url.replace(/\?.*/, ''))
  if (script === undefined) return void response.writeHead(404).end()
  const body = script(one, response)
  if (body === undefined) return
  response.setHeader('content-type', 'application/json').end(typeof body === 'string' ? body : JSON.stringify(body))
}
