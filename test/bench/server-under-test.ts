/**
 * A server to be measured: started as people start it, in a process of its own, with what it costs the machine told by
 * the kernel.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface ServerUnderTest {
  readonly port: number
  /** PEM: whom to trust, and who we are. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string }
  /** From the start of the process until it said that it is ready. */
  readonly readyMs: number
  readonly usage: () => Promise<Usage>
  readonly stop: () => Promise<void>
}

export interface Usage {
  /** Of all its threads so far. On a machine that others use too this says more than requests a second. */
  readonly cpuMs: number
  readonly residentMb: number
}

/** `folder` is empty and the server's own; `datastore` is a value of `--datastore`. */
export type StartServer = (folder: string, datastore: string) => Promise<ServerUnderTest>

/** Linux counts processor time in these, whatever the kernel's own tick is. */
const TICK_MS = 10

const root = fileURLToPath(new URL('../../', import.meta.url))
/** What `npm run build` made, when it did: that is what people start. Else the sources, which start slower and larger. */
const isBuilt = existsSync(join(root, 'dist', 'hyperkube.mjs'))

/** Which of the two is measured, for people. */
export const measured: string = isBuilt ? 'the bundle, as built last' : 'the sources, not built'

export const startOurs: StartServer = async (folder, datastore) =>
  startProgram([isBuilt ? await installed() : join(root, 'bin', 'entry.mjs'), 'up'], folder, datastore)

let made: Promise<string> | undefined

/** The entry of a folder laid out as npm installs it, without sources. */
function installed(): Promise<string> {
  made ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-installed-'))
    await mkdir(join(folder, 'bin'))
    await copyFile(join(root, 'bin', 'entry.mjs'), join(folder, 'bin', 'entry.mjs'))
    await symlink(join(root, 'dist'), join(folder, 'dist'))
    process.once('exit', () => rmSync(folder, { recursive: true }))
    return join(folder, 'bin', 'entry.mjs')
  })()
  return made
}

/** Upstream's kube-apiserver, whose datastore is an etcd of its own whatever is asked for. */
export const startTheirs: StartServer = async (folder) => {
  const { startReference } = await import('../upstream/reference.ts')
  const reference = await startReference(folder)
  const usage = async (): Promise<Usage> => {
    const usages = await Promise.all(reference.pids.map(usageOf))
    const sum = (of: (usage: Usage) => number): number => usages.reduce((total, one) => total + of(one), 0)
    return { cpuMs: sum(({ cpuMs }) => cpuMs), residentMb: sum(({ residentMb }) => residentMb) }
  }
  return { ...reference, usage }
}

/** Starts `hyperkube up`, or a script that takes the same flags. */
export async function startProgram(
  script: readonly string[],
  folder: string,
  datastore: string,
): Promise<ServerUnderTest> {
  const flags = ['--data-dir', folder, '--datastore', datastore, '--kubeconfig', join(folder, 'kubeconfig')]
  const args = ['--disable-warning=ExperimentalWarning', ...script, ...flags, '--secure-port', '0', '-o', 'json']
  const start = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const ready = await Promise.race([once(lines, 'line'), ended])
  const readyMs = performance.now() - start
  if (typeof ready[0] !== 'string') throw new Error(`The server ended with ${String(ready[0])} before it was ready`)
  const { apiServer } = JSON.parse(ready[0]) as { apiServer: string }
  const file = (name: string): Promise<string> => readFile(join(folder, 'pki', name), 'utf8')
  const tls = { ca: await file('ca.crt'), cert: await file('admin.crt'), key: await file('admin.key') }
  return {
    port: Number(new URL(apiServer).port),
    tls,
    readyMs,
    usage: () => usageOf(child.pid ?? 0),
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Not a number where there is no /proc. */
async function usageOf(pid: number): Promise<Usage> {
  const [stat, status] = await Promise.all(
    ['stat', 'status'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')),
  )
  // The name, second, is in parentheses and may hold anything; user and system time are the 14th and 15th.
  const fields = (stat ?? '').slice((stat ?? '').lastIndexOf(')') + 2).split(' ')
  const cpuMs = (Number(fields[11] ?? Number.NaN) + Number(fields[12] ?? Number.NaN)) * TICK_MS
  const residentMb = Number(/^VmRSS:\s*(\d+)/m.exec(status ?? '')?.[1] ?? Number.NaN) / 1024
  return { cpuMs, residentMb }
}
