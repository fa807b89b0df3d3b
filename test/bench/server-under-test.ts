/**
 * Starts a kube-apiserver as a separate process for a benchmark: ours as npm installs it, or upstream's, with the same
 * flags. The kernel reports its processor time and memory.
 */
import { spawnSync } from 'node:child_process'
import { rmSync, symlinkSync } from 'node:fs'
import { mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

import { type AdminTls, end, launch, prepareServer, untilReady } from '../upstream/kube-apiserver.ts'

export interface ServerUnderTest {
  /** Not a number for several processes. */
  readonly pid: number
  readonly port: number
  readonly tls: AdminTls
  /** From the start of the process (with upstream's: of etcd) until /readyz says that it is ready. */
  readonly readyMs: number
  readonly usage: () => Promise<Usage>
  readonly stop: () => Promise<void>
}

export interface Usage {
  /** Of all its threads so far. On a machine that others use too this says more than requests a second. */
  readonly cpuMs: number
  readonly residentMb: number
  /** Of that, what is no file: heaps and stacks, without the program itself, which the kernel can drop and read again. */
  readonly anonymousMb: number
}

/** `folder` is the server's own: started there again, it goes on with what it has stored. */
export type StartServer = (folder: string) => Promise<ServerUnderTest>

/** Linux counts processor time in this unit, independent of the kernel's own tick. */
const TICK_MS = 10

const root = fileURLToPath(new URL('../../', import.meta.url))

export const startOurs: StartServer = startOursWith([])

/** With more flags. */
export function startOursWith(more: readonly string[]): StartServer {
  return async (folder) => {
    const program = await installed()
    const prepared = await prepareServer(folder)
    const flags = [...prepared.flags, `--datastore=sqlite:${join(folder, 'store.db')}`, ...more]
    const start = performance.now()
    const child = await launch(program, ['kube-apiserver', ...flags], join(folder, 'hyperkube.log'))
    await untilReady(prepared, child)
    return {
      ...prepared,
      pid: child.pid ?? Number.NaN,
      readyMs: performance.now() - start,
      usage: () => usageOf(child.pid ?? 0),
      stop: () => end(child, 'SIGTERM'),
    }
  }
}

let installing: Promise<string> | undefined

/**
 * The program of the package, packed now from the sources and installed as people install it; gone when we are. HYPERKUBE_PROGRAM names
 * one that is there already, such as `bin/hyperkube` of the sources.
 */
export function installed(): Promise<string> {
  const { HYPERKUBE_PROGRAM } = process.env
  if (HYPERKUBE_PROGRAM !== undefined) return Promise.resolve(HYPERKUBE_PROGRAM)
  installing ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-installed-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    npm(root, 'pack', '--pack-destination', folder)
    const [tarball = ''] = await readdir(folder)
    // Without the Node it brings: the bench runs on that very one.
    npm(folder, 'install', '--omit=optional', '--no-audit', '--no-fund', '--prefer-offline', join(folder, tarball))
    linkNode(join(folder, 'node_modules'))
    return join(folder, 'node_modules', 'hyperkube', 'bin', 'hyperkube')
  })()
  return installing
}

/** The Node of this very process, where the program looks for the one that npm would have brought. */
function linkNode(modules: string): void {
  const system = { darwin: 'darwin', linux: 'linux', win32: 'win' }[process.platform as string] ?? process.platform
  for (const name of [`node-${system}-${process.arch}`, `node-bin-${system}-${process.arch}`])
    symlinkSync(dirname(dirname(process.execPath)), join(modules, name))
}

function npm(cwd: string, ...args: readonly string[]): void {
  const done = spawnSync('npm', [...args, '--silent'], { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  if (done.status !== 0) throw new Error(`npm ${args[0]} failed; see its messages above`)
}

/** Upstream's kube-apiserver on an etcd of its own; what both use is added up. */
export const startTheirs: StartServer = async (folder) => {
  const { startReference } = await import('../upstream/reference.ts')
  const reference = await startReference(folder)
  return { ...reference, pid: Number.NaN, usage: () => usageOfAll(reference.pids) }
}

/** The usage of several processes together. */
export async function usageOfAll(pids: readonly number[]): Promise<Usage> {
  const usages = await Promise.all(pids.map(usageOf))
  const sum = (of: (usage: Usage) => number): number => usages.reduce((total, one) => total + of(one), 0)
  return {
    cpuMs: sum(({ cpuMs }) => cpuMs),
    residentMb: sum(({ residentMb }) => residentMb),
    anonymousMb: sum(({ anonymousMb }) => anonymousMb),
  }
}

/** Of what processes share each has its part. Costs the kernel more than `residentMb`. Not a number where there is no /proc. */
export async function proportionalMb(pids: readonly number[]): Promise<number> {
  const all = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
      return Number(/^Pss:\s*(\d+)/m.exec(text)?.[1] ?? Number.NaN) / 1024
    }),
  )
  return all.reduce((sum, one) => sum + one, 0)
}

/** Of a process or a thread, from its file `stat` in /proc. */
export function processorMs(stat: string): number {
  // The name, second, is in parentheses and may hold anything; user and system time are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11] ?? Number.NaN) + Number(fields[12] ?? Number.NaN)) * TICK_MS
}

/** Not a number where there is no /proc. */
export async function usageOf(pid: number): Promise<Usage> {
  const [stat, status] = await Promise.all(
    ['stat', 'status'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')),
  )
  const cpuMs = processorMs(stat ?? '')
  const mbOf = (line: RegExp): number => Number(line.exec(status ?? '')?.[1] ?? Number.NaN) / 1024
  return { cpuMs, residentMb: mbOf(/^VmRSS:\s*(\d+)/m), anonymousMb: mbOf(/^RssAnon:\s*(\d+)/m) }
}
