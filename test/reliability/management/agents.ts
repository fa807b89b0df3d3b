/**
 * Child process of the management load test: an HTTP server plays all API servers, with one agent for each simulated
 * cluster. Agents connect through a relay that can cut their connections. The parent sends commands by messages.
 */
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as createRelay, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { runClusterAgent } from '#cluster-agent/agent.ts'
import { createApiProxy } from '#cluster-agent/api-proxy.ts'
import { realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'

import type { AgentPlan, AgentCommand } from './wire.ts'

const RESTART_MS = 500
const quiet = { write: (_text: string, done: () => void) => done() }
const { logger: log } = createLog({ clock: realClock, stream: quiet, errorStream: quiet })

const NODES = JSON.stringify({
  apiVersion: 'v1',
  kind: 'NodeList',
  metadata: { resourceVersion: '1' },
  items: Array.from({ length: 5 }, (_none, at) => ({
    metadata: { name: `n${at}`, labels: { 'kubernetes.io/hostname': `n${at}` } },
    status: { capacity: { cpu: '4', memory: '8Gi' }, conditions: [{ type: 'Ready', status: 'True' }] },
  })),
})

/** The path begins with the cluster: `/c7/version`. */
function answer({ url = '' }: IncomingMessage, response: ServerResponse): void {
  const [, cluster = '', path = ''] = /^\/(c\d+)(\/.*)/.exec(url) ?? []
  const send = (status: number, body: string): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  if (path === '/version') return send(200, '{"gitVersion":"v1.36.0"}')
  if (path.startsWith('/api/v1/namespaces/kube-system'))
    return send(200, JSON.stringify({ metadata: { name: 'kube-system', uid: `uid-of-${cluster}` } }))
  if (path.includes('watch=')) {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write('{"type":"BOOKMARK","object":{"metadata":{}}}\n'), 1000)
    response.on('close', () => clearInterval(timer))
    return
  }
  if (path.startsWith('/api/v1/nodes')) return send(200, NODES)
  // The roles of the server.
  send(200, '{"metadata":{"resourceVersion":"1"},"items":[]}')
}

const relayed: Socket[] = []

async function startRelay(port: number): Promise<number> {
  const relay = createRelay({ noDelay: true }, (client) => {
    const server = connect({ host: '127.0.0.1', port, noDelay: true })
    relayed.push(client)
    client.pipe(server).pipe(client)
    const end = (): void => {
      client.destroy()
      server.destroy()
      if (relayed.includes(client)) relayed.splice(relayed.indexOf(client), 1)
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return (relay.address() as AddressInfo).port
}

/** Ends when the agent is killed. */
async function runAgent(plan: AgentPlan, at: number, ports: readonly [backend: number, relay: number]): Promise<never> {
  const file = join(mkdtempSync(join(tmpdir(), 'load-agent-')), 'kubeconfig')
  const cluster = { name: 'c', cluster: { server: `http://127.0.0.1:${ports[0]}/c${at}` } }
  const context = { name: 'x', context: { cluster: 'c', user: 'u' } }
  const users = [{ name: 'u', user: {} }]
  const whole = { apiVersion: 'v1', kind: 'Config', clusters: [cluster], users, contexts: [context] }
  writeFileSync(file, JSON.stringify({ ...whole, 'current-context': 'x' }))
  const read = (path: string): Promise<string> => readFile(path, 'utf8')
  const config = await programConfig({ kubeconfig: file, master: '' }, { env: {}, cwd: '/', readFile: read })
  const credential = secureRandom.bytes(32).toString('base64url')
  for (;;) {
    const connection = await openConnection(config, { clock: realClock, readFile: read })
    const proxy = createApiProxy({ connection, clock: realClock, log })
    const stop = new AbortController()
    stops[at] = stop
    await runClusterAgent(
      {
        server: `https://127.0.0.1:${ports[1]}`,
        ca: plan.ca,
        registrationToken: plan.tokens[at] ?? '',
        credential,
        describe: () => Promise.resolve({ uid: `uid-of-c${at}`, agentVersion: '0' }),
        proxy,
        clock: realClock,
        random: secureRandom,
        log,
      },
      stop.signal,
    )
    await proxy.close()
    connection.close()
    await sleep(RESTART_MS)
  }
}

const stops: AbortController[] = []

async function start(plan: AgentPlan): Promise<void> {
  const backend = createServer(answer).listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const ports = [(backend.address() as AddressInfo).port, await startRelay(plan.port)] as const
  for (const at of plan.tokens.keys()) void runAgent(plan, at, ports)
}

process.on('message', (command: AgentCommand) => {
  if ('plan' in command) void start(command.plan)
  else if ('kill' in command) stops[command.kill]?.abort()
  else relayed[Math.floor(command.cut * relayed.length)]?.destroy()
})
process.on('disconnect', () => process.exit(0))
