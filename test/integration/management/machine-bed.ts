/**
 * Test bed for machines of the management server: starts real agents as child processes, and sends requests of agents
 * by hand.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock } from '#lib/clock.ts'
import { connectWebSocket, type WebSocketConnection, WebSocketError } from '#lib/http/websocket.ts'
import { type Accept, Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'
import { type Machine, MACHINE_CONNECTED, Machines } from '#management/kinds/machine.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'
import { eventually, type ManagementBed } from './bed.ts'

/** Returns a token for machines of the cluster. */
export async function machineToken(bed: ManagementBed, cluster: string, body: object = {}): Promise<string> {
  const made = await registration(bed, cluster, body)
  return made['token'] as string
}

export async function registration(
  bed: ManagementBed,
  cluster: string,
  body: object = {},
): Promise<Readonly<Record<string, unknown>>> {
  const path = `/v3/clusters/${cluster}/machines/registration`
  const made = await bed.request('POST', path, { token: bed.administrator, body })
  if (made.status !== 201) throw new Error(`No registration: ${made.text}`)
  return made.body
}

type ServerAddress = Pick<ManagementBed, 'url' | 'ca'>

export interface MachineClaim {
  readonly node: string
  readonly credential: string
  readonly token?: string
  readonly roles?: readonly ('etcd' | 'controlPlane' | 'worker')[]
  /** Default: `connect`. */
  readonly mode?: 'connect' | 'register'
  /** Fields instead of the usual ones. */
  readonly parameters?: object
}

export function claimHeaders({
  node,
  credential,
  token,
  roles = ['worker'],
  parameters,
}: MachineClaim): Record<string, string> {
  const usual = {
    node: {
      ...Object.fromEntries(roles.map((role) => [role, true])),
      requestedHostname: node,
      customConfig: { address: '', internalAddress: '10.0.0.7', label: {}, taints: [] },
    },
    machine: { os: 'linux', architecture: 'x64', hostname: node, agentVersion: '0' },
  }
  return {
    ...(token !== undefined && { 'x-api-tunnel-token': token }),
    'x-api-tunnel-credential': credential,
    'x-api-tunnel-params': Buffer.from(JSON.stringify(parameters ?? usual)).toString('base64'),
  }
}

/** The connection, or the status of a refusal. */
export async function claim(bed: ServerAddress, machine: MachineClaim): Promise<WebSocketConnection | number> {
  const { mode = 'connect' } = machine
  try {
    return await connectWebSocket({
      clock: realClock,
      url: `${bed.url.replace('https', 'wss')}/v3/connect${mode === 'register' ? '/register' : ''}`,
      protocols: [TUNNEL_PROTOCOL],
      headers: claimHeaders(machine),
      tls: { ca: bed.ca },
    })
  } catch (error) {
    if (error instanceof WebSocketError) return error.status
    throw error
  }
}

/** The status of a claim; an accepted connection is closed. */
export async function claimStatus(bed: ServerAddress, machine: MachineClaim): Promise<number> {
  const connection = await claim(bed, machine)
  if (typeof connection === 'number') return connection
  connection.destroy()
  return 101
}

/** The tunnel of a machine that serves what a test wants. */
export async function openTunnel(bed: ServerAddress, machine: MachineClaim, accept?: Accept): Promise<Tunnel> {
  const connection = await claim(bed, machine)
  if (typeof connection === 'number') throw new Error(`The server answered ${connection}`)
  const tunnel = new Tunnel(connection, { clock: realClock, side: 'agent', ...(accept !== undefined && { accept }) })
  void tunnel.serve().catch(() => undefined)
  return tunnel
}

export function machineNamed({ running }: ManagementBed, cluster: string, node: string): Machine | undefined {
  return running.objects.list(Machines).find(({ spec }) => spec.cluster === cluster && spec.nodeName === node)
}

export function isConnected(machine: Machine | undefined): boolean {
  const condition = machine?.status?.conditions?.find(({ type }) => type === MACHINE_CONNECTED)
  return condition?.status === 'True'
}

export interface MachineProcess extends AsyncDisposable {
  /** The folder with all files of the machine. */
  readonly root: string
  output(): string
  start(): void
  end(signal: NodeJS.Signals): Promise<void>
}

/** Runs `hyperkube node agent` with the flags of a command from the server. */
export function createMachineProcess(command: string, more: (root: string) => readonly string[]): MachineProcess {
  const root = mkdtempSync(join(tmpdir(), 'machine-'))
  const [, given = ''] = /node agent (.*)$/.exec(command) ?? []
  const flags = [...given.split(' '), `--root=${root}`, '--events=false', ...more(root)]
  let child: ChildProcess | undefined
  let output = ''
  const machine: MachineProcess = {
    root,
    output: () => output,
    start() {
      const started = spawn(HYPERKUBE, ['node', 'agent', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
      for (const stream of [started.stdout, started.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => (output += text))
      child = started
    },
    async end(signal) {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      child.kill(signal)
      await once(child, 'exit')
    },
    async [Symbol.asyncDispose]() {
      await machine.end('SIGKILL')
      rmSync(root, { recursive: true, force: true })
    },
  }
  return machine
}

/** Writes the kubeconfig of a machine to a file of it. */
export function writeKubeconfig({ root }: Pick<MachineProcess, 'root'>, kubeconfig: string): string {
  const path = join(root, 'kubeconfig')
  writeFileSync(path, kubeconfig, { mode: 0o600 })
  return path
}

export async function machineConnected(bed: ManagementBed, cluster: string, node: string): Promise<Machine> {
  await eventually(`machine ${node} is connected`, () => isConnected(machineNamed(bed, cluster, node)))
  return machineNamed(bed, cluster, node) as Machine
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
