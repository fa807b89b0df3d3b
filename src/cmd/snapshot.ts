/** `hyperkube snapshot`: saves the state of a running cluster, lists snapshots and restores them. */
import { join, resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { oneOf, string } from '#lib/flags/kinds.ts'
import { type Command, defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
import { StorageError } from '#storage/backend.ts'
import type { OpenBackendOptions } from '#storage/index.ts'
import {
  isSnapshotName,
  type ListedSnapshot,
  listSnapshots,
  restoreSnapshot,
  saveSnapshot,
  snapshotFile,
} from '#storage/snapshot/snapshot.ts'

import { formatBytes } from './bytes.ts'
import { dataDir, DATA_DIR_FLAGS } from './cluster/data-dir.ts'

const output = flag(oneOf('table', 'json'), 'table', 'output format: table or json', { shorthand: 'o' })

const save: Program = defineProgram({
  name: 'save',
  long:
    'save copies the whole state of a cluster to the folder "snapshots" of its data directory.\n\n' +
    'The cluster may be running: the copy is consistent and does not block requests. Values are copied as stored, ' +
    'so Secrets stay encrypted: store the encryption keys separately.',
  use: '[NAME] [flags]',
  operands: true,
  flags: {
    snapshot: { ...DATA_DIR_FLAGS, output },
    etcd: {
      'etcd-cafile': flag(string, '', 'certificate authority of the etcd cluster, as PEM `file`'),
      'etcd-certfile': flag(string, '', 'client certificate for the etcd cluster, as PEM `file`'),
      'etcd-keyfile': flag(string, '', 'client key for the etcd cluster, as PEM `file`'),
    },
  },
  async run({ flags, operands, ...context }, signal) {
    const [name] = operands
    if (operands.length > 1)
      throw new ProgramError(`A snapshot has one name, not ${operands.length}: ${operands.join(' ')}`)
    if (name !== undefined && !isSnapshotName(name)) {
      throw new ProgramError(`"${name}" cannot be the name of a snapshot; use letters, digits, ".", "_" and "-"`)
    }
    const { path, location } = dataDir(flags, context)
    const etcd = await etcdOptions(flags, context)
    const { clock, random, stdout } = context
    const options = { clock, random, etcd, signal, ...(name !== undefined && { name }) }
    const saved = await explained(() => saveSnapshot(location, folderOf(path), options))
    stdout.write(
      flags.output === 'json'
        ? toJson(saved)
        : `Saved snapshot "${saved.name}" at revision ${saved.revision} (${formatBytes(saved.sizeBytes)}) to ${saved.file}\n`,
    )
    return 0
  },
})

const restore: Program = defineProgram({
  name: 'restore',
  long:
    'restore replaces the state of a cluster with a snapshot. Stop the cluster first.\n\n' +
    'The snapshot is verified first, and the old state is kept beside it. Revisions continue ' +
    'above all earlier ones, so that clients notice the change and list again.',
  use: 'NAME|FILE [flags]',
  operands: true,
  flags: { snapshot: { ...DATA_DIR_FLAGS } },
  async run({ flags, operands, ...context }) {
    const [name] = operands
    if (name === undefined || operands.length > 1)
      throw new ProgramError('Give the snapshot to restore; "hyperkube snapshot list" lists them')
    const { path, location } = dataDir(flags, context)
    const file = snapshotFile(folderOf(path), name.includes('/') ? resolve(context.cwd, name) : name)
    if (!location.startsWith('sqlite:')) throw new ProgramError(foreignRestore(location, file))
    const target = location.slice('sqlite:'.length)
    const { revision, kept } = await explained(() => restoreSnapshot(file, target, context.clock.now()))
    context.stdout.write(`Restored "${name}" to ${target}; revisions continue from ${revision}\n`)
    if (kept !== undefined) context.stdout.write(`The old state is in ${kept}; delete it when it is no longer needed\n`)
    return 0
  },
})

const list: Program = defineProgram({
  name: 'list',
  long: 'list shows the snapshots in the data directory, oldest first, and verifies each.',
  flags: { snapshot: { ...DATA_DIR_FLAGS, output } },
  async run({ flags, ...context }) {
    const snapshots = await explained(() => listSnapshots(folderOf(dataDir(flags, context).path)))
    context.stdout.write(flags.output === 'json' ? toJson(snapshots) : formatTable(snapshots))
    return snapshots.some(({ problem }) => problem !== undefined) ? 1 : 0
  },
})

const COMMANDS: readonly Command[] = [
  { name: 'save', short: 'Save the state of a running cluster', load: () => Promise.resolve(save) },
  {
    name: 'restore',
    short: 'Restore a saved state',
    load: () => Promise.resolve(restore),
  },
  { name: 'list', aliases: ['ls'], short: 'List and verify snapshots', load: () => Promise.resolve(list) },
]

export const snapshot: Program = defineProgram({
  name: 'snapshot',
  long: 'snapshot saves, restores and lists whole-cluster states.',
  flags: {},
  commands: [{ title: 'Available commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})

function folderOf(dataDir: string): string {
  return join(dataDir, 'snapshots')
}

type EtcdFlags = Readonly<Record<'etcd-cafile' | 'etcd-certfile' | 'etcd-keyfile', string>>

async function etcdOptions(
  flags: EtcdFlags,
  context: Pick<ProgramContext, 'readFile'>,
): Promise<NonNullable<OpenBackendOptions['etcd']>> {
  const read = async (name: keyof EtcdFlags): Promise<string | undefined> => {
    if (flags[name] === '') return undefined
    return context.readFile(flags[name]).catch((cause: Error) => {
      throw new ProgramError(`Cannot read --${name} "${flags[name]}": ${cause.message}`, { cause })
    })
  }
  const [ca, certificate, key] = [await read('etcd-cafile'), await read('etcd-certfile'), await read('etcd-keyfile')]
  return {
    tls: {
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { certificate }),
      ...(key !== undefined && { key }),
    },
  }
}

/** An etcd cluster is restored on its machines. */
function foreignRestore(location: string, file: string): string {
  if (location === 'memory') return 'A memory store ends with its process and cannot be restored'
  return (
    `An etcd cluster is restored by etcd's own tool, on every member: "etcdctl snapshot restore ${file} ` +
    '--bump-revision 1000000 --mark-compacted …" (etcd 3.4.27 or newer), which keeps revisions from going back'
  )
}

/** Runs `task`; reports problems that the user can fix without a stack trace. */
async function explained<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task()
  } catch (cause) {
    // The user can also fix errors of the file system.
    if (cause instanceof StorageError || (cause instanceof Error && 'syscall' in cause)) {
      throw new ProgramError(cause.message, { cause })
    }
    throw cause
  }
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

function formatTable(snapshots: readonly ListedSnapshot[]): string {
  if (snapshots.length === 0) return 'No snapshots found\n'
  const rows = snapshots.map(({ name, store, revision, sizeBytes, createdAt, sha256, problem }) => [
    name,
    store ?? '?',
    revision === undefined ? '?' : String(revision),
    sizeBytes === undefined ? '?' : formatBytes(sizeBytes),
    createdAt ?? '?',
    sha256?.slice(0, 12) ?? '?',
    problem === undefined ? 'ok' : `Damaged: ${problem}`,
  ])
  const head = ['NAME', 'STORE', 'REVISION', 'SIZE', 'TIME', 'CHECKSUM', 'STATE']
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)))
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd((widths[column] ?? 0) + 3))
      .join('')
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}
