/**
 * Simulates machines in memory, for plans of any size. For interruption tests it counts calls and fails after a chosen
 * one, which may or may not have taken effect.
 */
import type { HttpAnswer, Machine, MachineFacts, ServiceSpec } from '#provision/machine.ts'
import { MachineError } from '#provision/machine.ts'
import { serviceDigest, sha256 } from '#provision/service-digest.ts'

export interface SimulatedFile {
  readonly content: string
  readonly mode: number
}

export interface SimulatedState {
  readonly files: Map<string, SimulatedFile>
  readonly services: Map<string, { spec: ServiceSpec; isRunning: boolean; starts: number }>
  readonly claims: Set<string>
}

export interface SimulatedOptions {
  readonly name: string
  readonly state: SimulatedState
  readonly facts?: Partial<MachineFacts>
  readonly now: () => number
  /** Answers HTTP requests to any server. */
  readonly http: (url: string, body: string) => HttpAnswer
  /** Called before and after each call; throws to simulate a killed caller. */
  readonly turn: (moment: 'before' | 'after', call: string) => void
  readonly removed?: (path: string) => void
  /** The effect of a program; none by default. */
  readonly run?: (command: readonly string[]) => void
}

const FACTS: Omit<MachineFacts, 'hostname' | 'now'> = {
  system: 'debian 12',
  kernel: '6.1.0',
  architecture: 'x64',
  cgroupVersion: 2,
  processors: 4,
  memoryBytes: 8 * 2 ** 30,
  swapBytes: 0,
  freeBytes: 50 * 2 ** 30,
  hasSystemd: true,
  addresses: [],
  programs: ['containerd', 'runc', 'ip', 'nft', 'mount', 'umount', 'conntrack', 'iptables'],
}

export function emptyState(): SimulatedState {
  return { files: new Map(), services: new Map(), claims: new Set() }
}

export function simulatedMachine(options: SimulatedOptions): Machine {
  const calls = simulatedCalls(options)
  const counted = Object.entries(calls).map(([name, call]) => [
    name,
    async (ask: never) => {
      options.turn('before', name)
      const answer = await (call as (ask: never) => Promise<object>)(ask)
      options.turn('after', name)
      return answer
    },
  ])
  return Object.fromEntries(counted) as Machine
}

type FileCalls = Pick<Machine, 'read' | 'write' | 'remove' | 'uploadAt' | 'uploadPart' | 'uploadEnd'>

function fileCalls(files: SimulatedState['files'], removed: (path: string) => void): FileCalls {
  const write = (path: string, mode: number, content: Buffer): object => {
    files.set(path, { content: content.toString('latin1'), mode })
    return {}
  }
  const part = (path: string, digest: string): string => `${path}.${digest.slice(0, 12)}.part`
  return {
    async read({ path, part: { at, length } = { at: 0, length: Infinity } }) {
      const found = files.get(path)
      return found === undefined ? {} : { content: Buffer.from(found.content.slice(at, at + length), 'latin1') }
    },
    write: async ({ path, mode, content }) => write(path, mode, content),
    async remove({ paths }) {
      for (const path of files.keys())
        if (paths.some((each) => path === each || path.startsWith(`${each}/`))) files.delete(path)
      for (const path of paths) removed(path)
      return {}
    },
    uploadAt: async ({ path, sha256: digest }) => ({
      at: files.get(part(path, digest))?.content.length ?? 0,
      isDone: fileState(files.get(path))?.digest === digest,
    }),
    async uploadPart({ path, sha256: digest, at, content }) {
      const before = files.get(part(path, digest))?.content.slice(0, at) ?? ''
      return write(part(path, digest), 0o600, Buffer.from(before + content.toString('latin1'), 'latin1'))
    },
    async uploadEnd({ path, sha256: digest, mode }) {
      const whole = files.get(part(path, digest))
      if (fileState(whole)?.digest !== digest) throw new MachineError(`${path} was not uploaded completely`)
      files.delete(part(path, digest))
      return write(path, mode, Buffer.from(whole?.content ?? '', 'latin1'))
    },
  }
}

function simulatedCalls({ name, state, facts, now, http, removed = () => undefined, run }: SimulatedOptions): Machine {
  const { files, services, claims } = state
  return {
    facts: async () => ({ ...FACTS, hostname: name, now: now(), ...facts }),
    look: async (ask) => ({
      files: Object.fromEntries(ask.files.map((path) => [path, fileState(files.get(path))])),
      services: Object.fromEntries(
        ask.services.map((each) => {
          const found = services.get(each)
          return [each, found && { digest: serviceDigest(found.spec), isRunning: found.isRunning }]
        }),
      ),
    }),
    ...fileCalls(files, removed),
    async claim({ paths }) {
      for (const path of paths) claims.add(path)
      return {}
    },
    async restore() {
      files.clear()
      services.clear()
      claims.clear()
      return {}
    },
    async run({ command }) {
      run?.(command)
      return { code: 0, stdout: '', stderr: '' }
    },
    async serve({ service }) {
      services.set(service.name, {
        spec: service,
        isRunning: true,
        starts: (services.get(service.name)?.starts ?? 0) + 1,
      })
      return {}
    },
    async retire({ name: gone }) {
      services.delete(gone)
      return {}
    },
    tail: async () => ({ text: '' }),
    dial: async () => ({ problem: '' }),
    listen: async () => ({ taken: [] }),
    unlisten: async () => ({}),
    http: async ({ url, content }) => http(url, content?.toString() ?? ''),
  }
}

function fileState(
  file: SimulatedFile | undefined,
): { digest: string; mode: number; uid: number; gid: number } | undefined {
  if (file === undefined) return undefined
  return { digest: sha256(Buffer.from(file.content, 'latin1')), mode: file.mode, uid: 0, gid: 0 }
}
