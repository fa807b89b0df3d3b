/** kubectl proxy: serves the API server on a local port with the user's credentials, and optionally static files. */
import { chmod, lstat, rm } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { resolve } from 'node:path'

import type { Connection } from '#client/connection/connection.ts'
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { HOP_BY_HOP } from '#lib/http/hop-by-hop.ts'
import type { ListenAddress } from '#lib/http/listen.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { joinSockets } from '#lib/net/join-sockets.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { logLine, logWarning } from '../klog.ts'
import { readingsOf, type RequestTarget, sendable, targetOf } from '../proxy/proxy-target.ts'
import { type Filter, filterOf, routeOf, withSlash } from '../proxy/proxying.ts'

const PORT = 8001

const FLAGS = {
  'accept-hosts': flag(string, '^localhost$,^127\\.0\\.0\\.1$,^\\[::1\\]$', 'Regular expressions for hosts to accept.'),
  'accept-paths': flag(string, '^.*', 'Regular expressions for paths to accept.'),
  address: flag(string, '127.0.0.1', 'IP address to serve on.'),
  'api-prefix': flag(string, '/', 'Path prefix of the API.'),
  'append-server-path': flag(bool, false, "Add the path of the context's server in front of each request path."),
  'disable-filter': flag(
    bool,
    false,
    'Disable request filtering. Web pages may then send requests to a port that they can reach.',
  ),
  keepalive: flag(
    duration,
    0,
    'Keepalive period of connections. Accepted without effect: the operating system decides.',
  ),
  port: flag(int, PORT, 'Port to serve on. 0 selects a free port.', { shorthand: 'p' }),
  'reject-methods': flag(
    string,
    '^$',
    "Regular expressions for methods to reject (--reject-methods='POST,PUT,PATCH').",
  ),
  'reject-paths': flag(
    string,
    '^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach',
    'Regular expressions for paths to reject, even if they are accepted.',
  ),
  'unix-socket': flag(string, '', 'Unix socket to serve on.', { shorthand: 'u' }),
  www: flag(string, '', 'Directory with static files to serve.', { shorthand: 'w' }),
  'www-prefix': flag(string, '/static/', 'Path prefix of the static files.', { shorthand: 'P' }),
}

type ProxyInvocation = Invocation<typeof FLAGS>

export const proxy: Command = defineCommand({
  name: 'proxy',
  use: '[--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix] [options]',
  long: 'Serve the API of the cluster on a local port with your credentials, and optionally static files from a directory.',
  examples: `# Serve only the API
kubectl proxy --api-prefix=/

# Serve part of the API, and static files
kubectl proxy --www=/my/files --www-prefix=/static/ --api-prefix=/api/

# Serve on a free port and print it
kubectl proxy --port=0`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, session, clock, signal, stdout } = invocation
    const connection = await session.connection()
    warnOfPath(invocation, connection.server)
    if (flags['disable-filter'] && flags['unix-socket'] === '') {
      const text = 'Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious'
      logWarning(invocation, 'proxy.go:172', text)
    }
    const filter = flags['disable-filter'] ? undefined : filterOf(flags)
    if (flags.port !== PORT && flags['unix-socket'] !== '') {
      throw new KubectlError('cannot set --unix-socket and --port at the same time')
    }
    const serving = new ApiProxy(invocation, connection, filter)
    const server = createHttpServer({
      clock,
      upgrades: ['websocket', 'spdy/3.1'],
      serve: (exchange) => serving.serve(exchange),
      onError: () => undefined,
    })
    const address = await addressOf(invocation)
    const bound = await server.listen(address).catch((error: unknown) => {
      throw new KubectlError(listenText(address, asError(error)), { cause: error })
    })
    if ('path' in bound) await chmod(bound.path, 0o600)
    stdout.write(`Starting to serve on ${'path' in bound ? flags['unix-socket'] : hostPort(bound)}\n`)
    await aborted(signal)
    await server.drain(0)
    throw signal.reason
  },
})

function hostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function warnOfPath(invocation: ProxyInvocation, server: string): void {
  const { pathname } = new URL(server)
  if (invocation.flags['append-server-path'] || pathname === '/' || pathname === '') return
  const text = `Your kube context contains a server path ${pathname}, use --append-server-path to automatically append the path to each request`
  logWarning(invocation, 'proxy.go:166', text)
}

/** Removes an existing socket, even if it is in use. */
async function addressOf({ flags, cwd }: ProxyInvocation): Promise<ListenAddress> {
  if (flags['unix-socket'] === '') return { host: flags.address, port: flags.port }
  const path = resolve(cwd, flags['unix-socket'])
  const found = await lstat(path).catch(() => undefined)
  if (found?.isSocket() === true) await rm(path)
  return { path }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'bind: address already in use',
  EACCES: 'bind: permission denied',
  EADDRNOTAVAIL: 'bind: cannot assign requested address',
  ENOENT: 'bind: no such file or directory',
}

function listenText(address: ListenAddress, error: NodeJS.ErrnoException): string {
  const code = error.code ?? (error.cause as NodeJS.ErrnoException | undefined)?.code ?? ''
  const where = 'path' in address ? `unix ${address.path}` : `tcp ${address.host}:${address.port}`
  return `listen ${where}: ${REASONS[code] ?? error.message}`
}

const PLAIN = ['Content-Type', 'text/plain; charset=utf-8', 'X-Content-Type-Options', 'nosniff']

class ApiProxy {
  readonly #invocation: ProxyInvocation
  readonly #connection: Connection
  readonly #filter: Filter | undefined

  constructor(invocation: ProxyInvocation, connection: Connection, filter: Filter | undefined) {
    this.#invocation = invocation
    this.#connection = connection
    this.#filter = filter
  }

  async serve(exchange: Exchange): Promise<void> {
    const { flags, cwd } = this.#invocation
    const files = flags.www === '' ? undefined : withSlash(flags['www-prefix'])
    const target = targetOf(exchange.path)
    if (target === undefined) return exchange.respond(400, PLAIN, '400 Bad Request\n')
    const route = routeOf(target, { api: withSlash(flags['api-prefix']), files })
    if (route.to === 'nowhere') return exchange.respond(404, PLAIN, '404 page not found\n')
    if (route.to === 'clean') return exchange.respond(301, ['Location', route.path])
    if (route.to === 'files') {
      const { serveFile } = await import('../proxy/static-files.ts')
      return serveFile(exchange, resolve(cwd, flags.www), route.path)
    }
    const refusal = this.#refusalOf(exchange, target, route.path)
    if (refusal !== undefined) return exchange.respond(refusal.status, PLAIN, refusal.text)
    try {
      await this.#pass(exchange, sendable(route.path + route.query))
    } catch (error) {
      this.#failed(exchange, asError(error))
    }
  }

  #refusalOf(exchange: Exchange, { authority }: RequestTarget, path: string): Refusal | undefined {
    const readings = readingsOf(path)
    if (readings === 'malformed') return { status: 400, text: '400 Bad Request\n' }
    if (this.#filter === undefined) return undefined
    const hosts = authority === undefined ? [exchange.authority] : [exchange.authority, authority]
    const { method } = exchange
    if (readings !== 'hidden' && this.#filter({ method, readings, hosts })) return undefined
    return { status: 403, text: 'Forbidden\n' }
  }

  #failed(exchange: Exchange, error: Error): void {
    const { stderr, clock } = this.#invocation
    stderr.write(logLine('E', clock.now(), 'proxy_server.go:147', `Error while proxying request: ${error.message}`))
    if (exchange.isAnswered) return exchange.fail()
    exchange.respond(500, PLAIN, Buffer.from(`${error.message}\n`))
  }

  async #pass(exchange: Exchange, path: string): Promise<void> {
    const { server } = this.#connection
    const { origin, pathname } = new URL(server)
    const base = this.#invocation.flags['append-server-path'] ? pathname.replace(/\/$/, '') : ''
    const { method, signal } = exchange
    const request = { method, url: origin, path: base + path, headers: passedOn(exchange.headers), signal }
    if (exchange.upgradeProtocol !== undefined) return this.#upgrade(exchange, request)
    const hasBody =
      exchange.headers['content-length'] !== undefined || exchange.headers['transfer-encoding'] !== undefined
    const body = hasBody ? { body: exchange.body() } : {}
    const answer = await this.#connection.transport.request({ ...request, ...body })
    await exchange.respondPieces(answer.status, listOf(answer.headers), { pieces: answer.body })
  }

  async #upgrade(exchange: Exchange, request: UpgradeRequest): Promise<void> {
    const { signal, clock } = this.#invocation
    const headers = { ...request.headers, connection: 'Upgrade', upgrade: exchange.headers.upgrade ?? '' }
    const result = await this.#connection.upgrade({ ...request, headers })
    if (!result.isUpgraded) {
      const { status, headers: received, body } = result.response
      return exchange.respondPieces(status, listOf(received), { pieces: body })
    }
    const { socket, head } = exchange.upgrade()
    const lines = Object.entries(result.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one) => `${name}: ${one}\r\n`),
    )
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`)
    if (result.head.length > 0) socket.write(result.head)
    if (head.length > 0) result.socket.write(head)
    await joinSockets(socket, result.socket, { clock, signal })
  }
}

interface UpgradeRequest {
  readonly method: string
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
}

interface Refusal {
  readonly status: number
  readonly text: string
}

/** Hop-by-hop headers, which are not forwarded. */
const LOCAL: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'date', 'expect', 'host'])

function passedOn(headers: IncomingHttpHeaders): Record<string, string | readonly string[]> {
  const kept = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !LOCAL.has(name) && !name.startsWith(':'),
  )
  return Object.fromEntries(kept) as Record<string, string | readonly string[]>
}

function listOf(headers: IncomingHttpHeaders): string[] {
  return Object.entries(passedOn(headers))
    .filter(([name]) => name !== 'content-length')
    .flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one]))
}
