/** `hyperkube image`: manages the images in the containerd of a cluster. */
import { createWriteStream } from 'node:fs'
import { mkdtemp, open, rm as rmTree } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type { Image } from '#apis/wire/cri.ts'
import { extraNodesIn } from '#cluster/machine/machine-leftovers.ts'
import { ArchiveError } from '#containerd/archive.ts'
import { createImageApi } from '#containerd/image-api.ts'
import { loadArchive } from '#containerd/load.ts'
import { containerdPaths } from '#containerd/paths.ts'
import { connect, findContainerd } from '#containerd/start.ts'
import { createRuntimeClient } from '#cri/client.ts'
import { normalImageName } from '#cri/image-name.ts'
import type { Runtime } from '#cri/runtime.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf, string } from '#lib/flags/kinds.ts'
import type { GrpcClient } from '#lib/grpc/client.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import { type Command, defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'

import { formatBytes } from './bytes.ts'
import { comesTrue } from './cluster/cluster-file.ts'
import { DATA_DIR_FLAGS, dataDir } from './cluster/data-dir.ts'

const TARGET_FLAGS = {
  'data-dir': DATA_DIR_FLAGS['data-dir'],
  address: flag(string, '', '`socket` of another containerd (default: that of the cluster)'),
}

type Context = Pick<ProgramContext, 'clock' | 'random' | 'env' | 'cwd'>
type TargetFlags = { readonly 'data-dir': string; readonly address: string }

const load: Program = defineProgram({
  name: 'load',
  long:
    'load imports images from archives into containerd, without a registry.\n\n' +
    'It reads archives from "docker save", "podman save", skopeo or buildkit: docker format or an OCI layout as tar, ' +
    'plain or compressed with gzip or zstd, with one or several images. "-" is standard input.',
  use: 'FILE... [flags]',
  operands: true,
  flags: {
    image: {
      ...TARGET_FLAGS,
      name: flag(string, '', 'name for the only image of an archive, instead of the one in the archive'),
    },
  },
  async run({ flags, operands, stdout, stdin, ...context }, signal) {
    if (operands.length === 0) throw new ProgramError('Give the archives to load, or "-" for standard input')
    const sockets = await socketsOf(flags, context)
    const options = {
      architecture: ARCHITECTURES[process.arch] ?? process.arch,
      ...(flags.name !== '' && { name: flags.name }),
    }
    await withArchives({ operands, stdin, cwd: context.cwd, isReadOnce: sockets.length === 1 }, async (archives) => {
      for (const archive of archives) {
        for (const [at, socket] of sockets.entries())
          await withSocket(socket, context, async (client, runtime) => {
            const tools = { ...context, api: createImageApi(client), signal }
            const names = await fromArchive(archive, (bytes) => loadArchive(bytes, tools, options))
            for (const name of at === 0 ? names : []) stdout.write(`Loaded ${name}\n`)
            await comesTrue(context.clock, SEEN_MS, () => areSeen(runtime, names))
          })
      }
    })
    return 0
  },
})

interface Archive {
  /** The name from the command line. */
  readonly operand: string
  readonly open: () => Promise<Readable>
}

interface Archives {
  readonly operands: readonly string[]
  readonly stdin: () => Readable
  readonly cwd: string
  readonly isReadOnce: boolean
}

/** Standard input can be read once, so it is copied to a file for several nodes. */
async function withArchives(
  { operands, stdin, cwd, isReadOnce }: Archives,
  task: (archives: readonly Archive[]) => Promise<void>,
): Promise<void> {
  const fromFile = (path: string) => async () => (await open(path)).createReadStream()
  const isKept = !isReadOnce && operands.includes('-')
  const folder = isKept ? await mkdtemp(join(tmpdir(), 'hyperkube-image-')) : undefined
  try {
    const kept = folder === undefined ? undefined : join(folder, 'archive')
    if (kept !== undefined) await pipeline(stdin(), createWriteStream(kept, { mode: 0o600 }))
    const fromStdin = kept === undefined ? () => Promise.resolve(stdin()) : fromFile(kept)
    await task(
      operands.map((operand) => ({ operand, open: operand === '-' ? fromStdin : fromFile(resolve(cwd, operand)) })),
    )
  } finally {
    if (folder !== undefined) await rmTree(folder, { recursive: true, force: true })
  }
}

/** Opened first, to report a misspelt name at once. */
async function fromArchive<T>(archive: Archive, task: (bytes: Readable) => Promise<T>): Promise<T> {
  let bytes: Readable | undefined
  try {
    bytes = await archive.open()
    return await task(bytes)
  } catch (cause) {
    throw explained(cause as Error, archive.operand)
  } finally {
    bytes?.destroy()
  }
}

/** Maps Node's architecture names to Kubernetes' names. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' }

/** containerd reports images to CRI with a short delay. */
const SEEN_MS = 10_000

async function areSeen(runtime: Runtime, names: readonly string[]): Promise<boolean> {
  const found = await Promise.all(names.map((name) => imageNamed(runtime, name)))
  return found.every((one) => one !== undefined)
}

function explained(cause: Error, operand: string): Error {
  const what = operand === '-' ? 'Standard input' : `"${operand}"`
  if (cause instanceof ArchiveError) return new ProgramError(`${what} cannot be loaded: ${cause.message}`, { cause })
  const { code } = cause as NodeJS.ErrnoException
  if (code === 'ENOENT') return new ProgramError(`There is no file ${what}`, { cause })
  if (code === 'EACCES' || code === 'EISDIR')
    return new ProgramError(`${what} cannot be read: ${cause.message}`, { cause })
  return cause
}

const list: Program = defineProgram({
  name: 'list',
  long: 'list shows the images on this machine that pods can use without pulling, with their sizes.',
  flags: {
    image: {
      ...TARGET_FLAGS,
      output: flag(oneOf('table', 'json'), 'table', 'output format: table or json', { shorthand: 'o' }),
    },
  },
  async run({ flags, stdout, ...context }) {
    const images = await withContainerd(flags, context, async (_, runtime) => (await runtime.listImages({})).images)
    const rows = images.flatMap(rowsOf).sort((a, b) => (a.name < b.name ? -1 : 1))
    stdout.write(flags.output === 'json' ? `${JSON.stringify(rows, undefined, 2)}\n` : table(rows))
    return 0
  },
})

interface Row {
  readonly name: string
  readonly id: string
  readonly sizeBytes: number
}

function rowsOf({ id, repoTags, repoDigests, size }: Image): Row[] {
  const names = repoTags.length > 0 ? repoTags : repoDigests.slice(0, 1)
  return (names.length > 0 ? names : ['<none>']).map((name) => ({ name, id, sizeBytes: Number(size) }))
}

function table(rows: readonly Row[]): string {
  const cells = [
    ['IMAGE', 'ID', 'SIZE'],
    ...rows.map(({ name, id, sizeBytes }) => [name, id.replace('sha256:', '').slice(0, 12), formatBytes(sizeBytes)]),
  ]
  const widths = [0, 1].map((at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)))
  return cells
    .map(([name = '', id = '', size = '']) => `${name.padEnd(widths[0] ?? 0)}  ${id.padEnd(widths[1] ?? 0)}  ${size}\n`)
    .join('')
}

const rm: Program = defineProgram({
  name: 'rm',
  long: 'rm removes images by name or ID, with all their names. Images of existing containers are kept unless --force is set.',
  use: 'IMAGE... [flags]',
  operands: true,
  flags: {
    image: {
      ...TARGET_FLAGS,
      force: flag(bool, false, 'also remove images of existing containers', { shorthand: 'f' }),
    },
  },
  async run({ flags, operands, stdout, ...context }) {
    if (operands.length === 0) throw new ProgramError('Give the images to remove; "hyperkube image list" lists them')
    for (const operand of operands) {
      const removed = new Set<string>()
      await withEach(flags, context, async (_, runtime) => {
        const found = await imageNamed(runtime, operand)
        if (found === undefined) return
        if (!flags.force) await checkUnused(runtime, found, operand)
        await runtime.removeImage({ image: { image: found.id } })
        for (const { name } of rowsOf(found)) removed.add(name)
      })
      if (removed.size === 0) throw new ProgramError(`There is no image "${operand}"`)
      for (const name of removed) stdout.write(`Removed ${name}\n`)
    }
    return 0
  },
})

async function checkUnused(runtime: Runtime, { id, repoDigests }: Image, name: string): Promise<void> {
  const { containers } = await runtime.listContainers({})
  const user = containers.find(({ imageRef, image }) => [id, ...repoDigests].includes(imageRef) || image?.image === id)
  if (user === undefined) return
  const pod = user.labels.get('io.kubernetes.pod.name') ?? user.podSandboxId
  throw new ProgramError(
    `Image "${name}" is used by container "${user.metadata?.name}" of pod "${pod}"; --force removes it anyway`,
  )
}

const pull: Program = defineProgram({
  name: 'pull',
  long: 'pull downloads images from their registries, like the kubelet.',
  use: 'IMAGE... [flags]',
  operands: true,
  flags: { image: { ...TARGET_FLAGS, creds: flag(string, '', '`user:password` for the registry') } },
  async run({ flags, operands, stdout, ...context }, signal) {
    if (operands.length === 0) throw new ProgramError('Give the images to pull')
    const [username = '', ...password] = flags.creds.split(':')
    const auth = flags.creds === '' ? {} : { auth: { username, password: password.join(':') } }
    await withEach(flags, context, async (_, runtime) => {
      for (const image of operands) {
        await runtime.pullImage({ image: { image }, ...auth }, { signal })
      }
    })
    for (const image of operands) stdout.write(`Pulled ${normalImageName(image)}\n`)
    return 0
  },
})

/** Finds an image by name or ID. */
async function imageNamed(runtime: Runtime, name: string): Promise<Image | undefined> {
  return (await runtime.imageStatus({ image: { image: name } })).image
}

/** Connects to the containerd of the machine itself. Throws ProgramError if it does not run. */
async function withContainerd<T>(flags: TargetFlags, context: Context, task: Task<T>): Promise<T> {
  const [socket = ''] = await socketsOf(flags, context)
  return withSocket(socket, context, task)
}

/** Connects to the containerd of each node on the machine, one after another. */
async function withEach(flags: TargetFlags, context: Context, task: Task<void>): Promise<void> {
  for (const socket of await socketsOf(flags, context)) await withSocket(socket, context, task)
}

type Task<T> = (client: GrpcClient, runtime: Runtime) => Promise<T>

/** Reports errors of containerd in its words. */
async function withSocket<T>(socket: string, context: Context, task: Task<T>): Promise<T> {
  const client = connect(socket, context)
  try {
    return await task(client, createRuntimeClient(client))
  } catch (cause) {
    throw cause instanceof GrpcError ? new ProgramError(cause.message, { cause }) : cause
  } finally {
    client.close()
  }
}

/** The first is the containerd of the machine, or the given one. Throws ProgramError if none runs. */
async function socketsOf({ address, ...flags }: TargetFlags, context: Context): Promise<readonly string[]> {
  const { path } = dataDir({ ...flags, datastore: 'sqlite' }, context)
  const found = async (socket?: string): Promise<string[]> => {
    const endpoint = await findContainerd(context, socket)
    return endpoint === undefined ? [] : [endpoint.replace(/^unix:\/\//, '')]
  }
  if (address !== '') {
    const named = address.replace(/^unix:\/\//, '')
    const sockets = await found(named)
    if (sockets.length === 0) throw new ProgramError(`No containerd responds at ${named}`)
    return sockets
  }
  const own = await found(containerdPaths(path).socket)
  if (own.length > 0) {
    const further = (await extraNodesIn(path)).map(({ places }) => found(places.socket))
    return [...own, ...(await Promise.all(further)).flat()]
  }
  const system = await found()
  if (system.length > 0) return system
  throw new ProgramError(
    `No containerd runs for the cluster in ${path}; "hyperkube up" as root starts one, --address sets another`,
  )
}

const COMMANDS: readonly Command[] = [
  { name: 'load', short: 'Import images from archives', load: () => Promise.resolve(load) },
  { name: 'list', aliases: ['ls'], short: 'List images and their sizes', load: () => Promise.resolve(list) },
  { name: 'rm', aliases: ['remove'], short: 'Remove images', load: () => Promise.resolve(rm) },
  { name: 'pull', short: 'Pull images from their registries', load: () => Promise.resolve(pull) },
]

export const image: Program = defineProgram({
  name: 'image',
  long: 'image loads, lists, removes and pulls images for pods on this machine.',
  flags: {},
  commands: [{ title: 'Available commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
