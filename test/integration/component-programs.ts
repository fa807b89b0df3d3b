/** Starts hyperkube's components as separate processes, which connect to a test server through a kubeconfig. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const BIN = new URL('../../bin/hyperkube', import.meta.url).pathname
const DEADLINE_MS = 60_000

export interface RunningProgram {
  readonly child: ChildProcess
  readonly port: number
  readonly log: () => string
}

export interface ComponentPrograms extends AsyncDisposable {
  readonly plane: ControlPlane
  /** For files that programs are to read. */
  readonly folder: string
  /** Resolves when it serves its port. */
  readonly start: (...args: string[]) => Promise<RunningProgram>
  /** Resolves when it has ended. */
  readonly ends: (...args: string[]) => Promise<{ readonly code: number; readonly log: string }>
  readonly get: (path: string) => Promise<unknown>
  readonly page: (port: number, path: string, token?: string) => Promise<{ status: number; text: string }>
  /** The identity of the leader. */
  readonly holder: () => Promise<string | undefined>
}

export async function until<T>(what: string, ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let waitedMs = 0; waitedMs < DEADLINE_MS; waitedMs += 50) {
    const found = await ask()
    if (found !== undefined) return found
    await sleep(realClock, 50)
  }
  throw new Error(`Waited in vain for ${what}`)
}

/** Port 0 would mean none at all, as upstream. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** With a control plane; `program` has the rights of `system:<program>` and no others. */
export async function componentPrograms(program: string, settings: object = {}): Promise<ComponentPrograms> {
  const tokens = `admin,admin,admin,"system:masters"\ncomponent,system:${program},component\n`
  const plane = await startControlPlane({ files: new Map([['tokens.csv', tokens]]), settings })
  const folder = await mkdtemp(join(tmpdir(), `${program}-`))
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, configFor(plane), { mode: 0o600 })
  const client = createHttpClient({ clock: realClock, tls: { insecure: true } })
  const started: RunningProgram[] = []
  const get = async (path: string): Promise<unknown> => (await plane.request('GET', path)).json()
  return {
    plane,
    folder,
    get,
    async start(...args) {
      const running = await startProgram(program, kubeconfig, args)
      started.push(running)
      return running
    },
    async ends(...args) {
      const child = spawn(BIN, [program, `--kubeconfig=${kubeconfig}`, ...args], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let log = ''
      child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
      const [code] = (await once(child, 'close')) as [number]
      return { code, log }
    },
    async page(port, path, token) {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const answer = await client.request({ url: `https://127.0.0.1:${port}${path}`, headers })
      return { status: answer.status, text: await answer.text(1 << 22) }
    },
    async holder() {
      const path = `/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${program}`
      const { spec } = (await get(path)) as { spec?: { holderIdentity?: string } }
      return spec?.holderIdentity === '' ? undefined : spec?.holderIdentity
    },
    async [Symbol.asyncDispose]() {
      for (const { child } of started) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      client.close()
      await plane.stop()
      await rm(folder, { recursive: true })
    },
  }
}

function configFor({ url: server, ca }: ControlPlane): string {
  const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  return JSON.stringify({
    clusters: [{ name: 'a', cluster }],
    users: [{ name: 'a', user: { token: 'component' } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  })
}

async function startProgram(program: string, kubeconfig: string, args: readonly string[]): Promise<RunningProgram> {
  const own = [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${await freePort()}`,
    '--leader-elect-lease-duration=8s',
    '--leader-elect-renew-deadline=6s',
    '--leader-elect-retry-period=500ms',
    ...args,
  ]
  const child = spawn(BIN, [program, ...own], { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const port = await until('its port', () => {
    if (child.exitCode !== null) throw new Error(`It ended:\n${log}`)
    const found = /Serving securely on 127\.0\.0\.1:(\d+)/.exec(log)?.[1]
    return found === undefined ? undefined : Number(found)
  })
  return { child, port, log: () => log }
}
