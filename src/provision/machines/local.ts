/** Implements the machine interface of `hyperkube build` for the machine on which this process runs. */
import { execFile } from 'node:child_process'
import { access, chown, lstat, open, readFile, rm } from 'node:fs/promises'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { unmountBelow } from '#lib/files/mount-table.ts'
import { createHttpClient } from '#lib/http/client.ts'

import { type FileState, type HttpAnswer, type Machine, MachineError, type Outcome } from '../machine.ts'
import { readFacts } from './facts.ts'
import { openJournal } from './journal.ts'
import { keeperServices } from './keeper-services.ts'
import type { Services } from './services.ts'
import { dialProblem, Listeners } from './sockets.ts'
import { systemdServices } from './systemd.ts'
import { digestOf, openUploads } from './uploads.ts'

export interface LocalMachineOptions {
  /** The builder's folder on this machine. */
  readonly home: string
  /** The command of the service keeper, for machines without systemd. */
  readonly keeper: readonly string[]
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
}

const MAX_OUTPUT = 16 << 20
/** Programs that are ending may still write into a folder. */
const PATIENCE = { maxRetries: 10, retryDelay: 100 }
const MAX_ANSWER = 4 << 20

/** Ends with `closing`; services keep running. */
export async function localMachine(options: LocalMachineOptions, closing: AsyncDisposableStack): Promise<Machine> {
  const { clock, home, env } = options
  const journal = openJournal(home)
  const uploads = openUploads(journal)
  const listeners = new Listeners()
  closing.defer(() => listeners.close())
  const services = await servicesOf(options, journal)
  return {
    facts: () => readFacts(clock, env['PATH'] ?? ''),
    async look({ files, services: names }) {
      const found = await Promise.all(files.map(async (path) => [path, await fileState(path)] as const))
      const kept = await Promise.all(names.map(async (name) => [name, await services.look(name)] as const))
      return { files: Object.fromEntries(found), services: Object.fromEntries(kept) }
    },
    read,
    async write({ path, mode, uid, gid, content }) {
      await journal.file(path)
      await writeFileAtomically(path, content, { mode })
      if (uid !== undefined || gid !== undefined) await chown(path, uid ?? 0, gid ?? 0)
      return {}
    },
    async remove({ paths }) {
      await unmountBelow(paths)
      // Else this process writes them when it exits, below a folder that may be one of the paths.
      flushCompileCache()
      for (const path of paths) await rm(path, { recursive: true, force: true, ...PATIENCE })
      return {}
    },
    async claim({ paths }) {
      for (const path of paths) await (path.endsWith('/*') ? journal.shelf(path.slice(0, -2)) : journal.tree(path))
      return {}
    },
    async restore() {
      await services.leave()
      await journal.undo()
      return {}
    },
    uploadAt: (upload) => uploads.at(upload),
    uploadPart: async (upload) => nothing(uploads.part(upload)),
    uploadEnd: async (upload) => nothing(uploads.end(upload)),
    run: ({ command, env: own = {}, content, timeoutMs }, signal) =>
      run(command, { env: { ...env, ...own }, timeout: timeoutMs, ...(signal && { signal }) }, content),
    serve: async ({ service }) => nothing(services.serve(service)),
    retire: async ({ name }) => nothing(services.retire(name)),
    tail: async ({ name, lines }) => ({ text: await services.tail(name, lines) }),
    dial: async (ask) => ({ problem: await dialProblem(ask, clock) }),
    listen: async ({ ports }) => ({ taken: await listeners.open(ports) }),
    unlisten: async () => nothing(listeners.close()),
    http: (ask) => requestServer(ask, clock),
  }
}

async function servicesOf(options: LocalMachineOptions, journal: ReturnType<typeof openJournal>): Promise<Services> {
  const hasSystemd = await access('/run/systemd/system').then(
    () => true,
    () => false,
  )
  return hasSystemd
    ? systemdServices({ folder: join(options.home, 'services'), journal })
    : keeperServices({ ...options, journal })
}

async function nothing(work: Promise<void>): Promise<object> {
  await work
  return {}
}

async function fileState(path: string): Promise<FileState | undefined> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return undefined
  const digest = found.isFile() ? ((await digestOf(path)) ?? '') : ''
  return { digest, mode: found.mode & 0o7777, uid: found.uid, gid: found.gid }
}

const read: Machine['read'] = async ({ path, last, part }) => {
  if (last === undefined && part === undefined) {
    const content = await readFile(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
      throw error
    })
    return content === undefined ? {} : { content }
  }
  try {
    await using handle = await open(path, 'r')
    const { size } = await handle.stat()
    const length = Math.min(part === undefined ? size : size - part.at, part?.length ?? last ?? size)
    if (length <= 0) return { content: Buffer.alloc(0) }
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, part?.at ?? size - length)
    return { content: buffer.subarray(0, bytesRead) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

function run(
  [program = '', ...args]: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly timeout: number; readonly signal?: AbortSignal },
  content: Buffer | undefined,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      args,
      { ...options, maxBuffer: MAX_OUTPUT, cwd: '/', killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code === 'string') {
          return reject(new MachineError(`Cannot run ${program}: ${error.message}`))
        }
        resolve({ code: error === null ? 0 : Number(error.code ?? 137), stdout, stderr })
      },
    )
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(content ?? '')
  })
}

async function requestServer(ask: Parameters<Machine['http']>[0], clock: Clock): Promise<HttpAnswer> {
  const { method = 'GET', url, content, authority, certificate, key, insecure, timeoutMs } = ask
  const textOf = (path: string | undefined): Promise<string | undefined> =>
    path === undefined ? Promise.resolve(undefined) : readFile(path, 'utf8')
  const client = createHttpClient({
    clock,
    tls: withoutUndefined({
      ca: await textOf(authority),
      certificate: await textOf(certificate),
      key: await textOf(key),
      insecure,
    }),
  })
  try {
    const answer = await client.request({ method, url, timeoutMs, ...(content !== undefined && { body: content }) })
    return { status: answer.status, text: await answer.text(MAX_ANSWER) }
  } catch (error) {
    return { status: 0, text: (error as Error).message }
  } finally {
    client.close()
  }
}

function withoutUndefined<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
