/** kubectl port-forward: forwards local ports to a pod. */
import { createServer, type Server, type Socket } from 'node:net'

import type { Pod, Service } from '#apis/core/v1.ts'
import { forwardConnection } from '#client/streams/forwarded-connection.ts'
import { dialPodPorts, type PodPorts } from '#client/streams/port-forward.ts'
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { duration } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import { listen } from '#lib/http/listen.ts'
import { StopSignal } from '#lib/program.ts'
import { userAgent } from '#model/version.ts'

import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { logLine } from '../klog.ts'
import { resourcePath } from '../related-objects.ts'
import {
  type ForwardedPort,
  type ListenAddress,
  parseAddresses,
  parsePorts,
  portsBehind,
  portsInPod,
} from '../streams/forwarded-ports.ts'
import { attachablePod, checkTimeout, readNamed, theOnly } from '../streams/target-pod.ts'

const FLAGS = {
  address: flag(
    strings,
    ['localhost'],
    'Comma-separated addresses to listen on: IP addresses or localhost. localhost means 127.0.0.1 and ::1, of which at least one must be available.',
  ),
  'pod-running-timeout': flag(
    duration,
    60_000,
    'Time to wait for a pod to run (5s, 2m, 3h). Must be greater than zero.',
  ),
}

type ForwardInvocation = Invocation<typeof FLAGS>

export const portForward: Command = defineCommand({
  name: 'port-forward',
  use: 'TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]',
  long: 'Forward local ports to a pod. For a deployment, a service or another workload, kubectl selects one pod. The session ends when that pod terminates.',
  examples: `# Forward local ports 5000 and 6000 to the same ports of pod mypod
kubectl port-forward pod/mypod 5000 6000

# Forward local port 8443 to the port "https" of a service
kubectl port-forward service/myservice 8443:https

# Forward port 8888 on all local addresses to port 5000 of the pod
kubectl port-forward --address 0.0.0.0 pod/mypod 8888:5000

# Forward a free local port to port 5000 of the pod
kubectl port-forward pod/mypod :5000`,
  flags: FLAGS,
  completes: 'pods and ports',
  async run(invocation) {
    const { args, flags, session, clock, signal } = invocation
    if (args.length < 2) throw usageError(invocation, 'TYPE/NAME and list of ports are required for port-forward')
    checkTimeout(invocation, flags['pod-running-timeout'])
    const { pod, ports } = await wanted(invocation)
    const { namespace = '', name = '' } = pod.metadata
    const rest = await session.rest()
    const path = resourcePath('v1/pods', namespace, name)
    const { phase = '' } = (await rest.json<Pod>(path)).status ?? {}
    if (phase !== 'Running') {
      throw new KubectlError(`unable to forward port because pod is not running. Current status=${phase}`)
    }
    const addresses = parseAddresses(flags.address)
    const forwarded = parsePorts(ports)
    const dialed = await dialPodPorts({
      connection: await session.connection(),
      clock,
      userAgent: userAgent('kubectl'),
      path: `${path}/portforward`,
      signal,
      spdyOnly: invocation.env['KUBECTL_PORT_FORWARD_WEBSOCKETS'] === 'false',
    }).catch((cause: unknown) => {
      throw new KubectlError(`error upgrading connection: ${asError(cause).message}`, { cause })
    })
    const forwarding = new PortForwarder(invocation, dialed)
    try {
      await forwarding.listenOn(forwarded, addresses)
      await Promise.race([dialed.closed, aborted(signal)])
    } finally {
      forwarding.close()
    }
    if (!signal.aborted) throw new KubectlError('lost connection to pod')
    // Ctrl-C is the normal end.
    if (signal.reason instanceof StopSignal && signal.reason.signal === 'SIGINT') return
    throw signal.reason
  },
})

async function wanted(invocation: ForwardInvocation): Promise<{ readonly pod: Pod; readonly ports: string[] }> {
  const { args, flags, session, clock } = invocation
  const [name = '', ...texts] = args
  const named = theOnly(await readNamed(invocation, { names: [name] }), 'expected a resource')
  const rest = await session.rest()
  const pod = await attachablePod(named, { rest, clock, timeoutMs: flags['pod-running-timeout'] })
  const isService = named.kind.group === '' && named.kind.kind === 'Service'
  const ports = isService ? portsBehind(texts, named.object as unknown as Service, pod) : portsInPod(texts, pod)
  return { pod, ports }
}

class PortForwarder {
  readonly #invocation: ForwardInvocation
  readonly #pod: PodPorts
  readonly #servers: Server[] = []
  readonly #sockets = new Set<Socket>()

  constructor(invocation: ForwardInvocation, pod: PodPorts) {
    this.#invocation = invocation
    this.#pod = pod
  }

  /** Throws KubectlError if it cannot listen on any port. */
  async listenOn(ports: readonly ForwardedPort[], addresses: readonly ListenAddress[]): Promise<void> {
    const { stderr } = this.#invocation
    let listening = 0
    for (const port of ports) {
      const problem = await this.#listenOnAll(port, addresses)
      if (problem === undefined) listening++
      else stderr.write(`Unable to listen on port ${port.local}: ${problem}\n`)
    }
    if (listening > 0) return
    const list = ports.map(({ local, remote }) => `{${local} ${remote}}`).join(' ')
    throw new KubectlError(`unable to listen on any of the requested ports: [${list}]`)
  }

  close(): void {
    for (const server of this.#servers) server.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#pod.close()
  }

  /** Returns the errors if too many addresses failed. The first address may choose the port for all. */
  async #listenOnAll(port: ForwardedPort, addresses: readonly ListenAddress[]): Promise<string | undefined> {
    let { local } = port
    const failed: { readonly isOneEnough: boolean; readonly text: string }[] = []
    let hasOne = false
    for (const { address, isOneEnough } of addresses) {
      try {
        local = await this.#listen(address, { local, remote: port.remote })
        hasOne ||= isOneEnough
      } catch (error) {
        failed.push({
          isOneEnough,
          text: `unable to create listener: Error ${listenText(address, local, asError(error))}`,
        })
      }
    }
    const isBad = failed.some(({ isOneEnough }) => !isOneEnough || !hasOne)
    const texts = failed.map(({ text }) => text).join(' ')
    return isBad ? `Listeners failed to create with the following errors: [${texts}]` : undefined
  }

  async #listen(address: string, { local, remote }: ForwardedPort): Promise<number> {
    const server = createServer({ allowHalfOpen: true, noDelay: true })
    const bound = await listen(server, { host: address, port: local })
    const port = 'port' in bound ? bound.port : local
    this.#servers.push(server)
    server.on('connection', (socket) => void this.#serve(socket, { local: port, remote }))
    const host = address.includes(':') ? `[${address}]` : address
    this.#invocation.stdout.write(`Forwarding from ${host}:${port} -> ${remote}\n`)
    return port
  }

  async #serve(socket: Socket, { local, remote }: ForwardedPort): Promise<void> {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#invocation.stdout.write(`Handling connection for ${local}\n`)
    try {
      const text = await forwardConnection(socket, await this.#pod.connect(remote))
      if (text !== '') this.#giveUp(`an error occurred forwarding ${local} -> ${remote}: ${text}`)
    } catch (error) {
      this.#log(`error creating forwarding stream for port ${local} -> ${remote}: ${asError(error).message}`)
    } finally {
      socket.end()
      socket.destroySoon()
    }
  }

  /** Like upstream, kubectl ends the session if the pod cannot be reached. */
  #giveUp(text: string): void {
    this.#log(text)
    this.#pod.close()
  }

  #log(text: string): void {
    const { stderr, clock } = this.#invocation
    const line = `"Unhandled Error" err=${goQuote(text)} logger="UnhandledError"`
    stderr.write(logLine('E', clock.now(), 'portforward.go:424', line))
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'address already in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'cannot assign requested address',
}

/** Go's text for a failed listen. */
function listenText(address: string, port: number, error: NodeJS.ErrnoException): string {
  const isV6 = address.includes(':')
  const where = isV6 ? `tcp6 [${address}]:${port}` : `tcp4 ${address}:${port}`
  const code = error.code ?? (error.cause as NodeJS.ErrnoException | undefined)?.code ?? ''
  return `listen ${where}: bind: ${REASONS[code] ?? error.message}`
}
