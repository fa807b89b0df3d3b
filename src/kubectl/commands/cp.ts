/**
 * kubectl cp: copies files to and from containers with the container's tar. It writes nothing outside of the target.
 */
import { createReadStream, createWriteStream } from 'node:fs'
import { lstat, mkdir, readdir, readlink, stat } from 'node:fs/promises'
import { basename, dirname, posix, resolve } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type { Pod } from '#apis/core/v1.ts'
import { readTar, type TarEntry, TarError } from '#lib/files/tar-read.ts'
import { TAR_END, tarHeaders, tarPadding } from '#lib/files/tar-write.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, int, string } from '#lib/flags/kinds.ts'
import { goQuote } from '#lib/go/text.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, ExitError, KubectlError } from '../errors.ts'
import { goFileError } from '../printing.ts'
import { resourcePath } from '../related-objects.ts'
import { chosenContainer, findContainer, noSuchContainer } from '../streams/containers.ts'
import { archivePrefix, type FileSpec, fileSpecOf, isWithin, joined, remotePath } from '../streams/copied-paths.ts'
import { writerTo } from '../streams/pod-logs.ts'
import { type RemoteRun, runRemote } from '../streams/remote-session.ts'

const FLAGS = {
  container: flag(string, '', "Name of the container. If omitted, use the pod's default container or its first one.", {
    shorthand: 'c',
  }),
  'no-preserve': flag(bool, false, 'Do not preserve owners and permissions in the container'),
  retries: flag(
    int,
    0,
    'Number of times to resume an interrupted copy from a container. If negative, there is no limit.',
  ),
}

type CpInvocation = Invocation<typeof FLAGS>

export const cp: Command = defineCommand({
  name: 'cp',
  use: '<file-spec-src> <file-spec-dest> [options]',
  long: 'Copy files and directories to and from containers. The container must have tar. Symbolic links in a container are skipped.',
  examples: `# Copy a local directory to /tmp/bar_dir in a pod
kubectl cp /tmp/foo_dir <some-pod>:/tmp/bar_dir

# Copy a local file to a container of a pod
kubectl cp /tmp/foo <some-pod>:/tmp/bar -c <specific-container>

# Copy a file from a pod in another namespace to this machine
kubectl cp <some-namespace>/<some-pod>:/tmp/foo /tmp/bar`,
  flags: FLAGS,
  completes: 'copied files',
  async run(invocation) {
    const { args, session } = invocation
    await session.namespace()
    const [from, to] = args
    if (from === undefined || to === undefined || args.length > 2) {
      throw new KubectlError('source and destination are required')
    }
    const [source, target] = [fileSpecOf(from), fileSpecOf(to)]
    if (source.pod !== '' && target.pod !== '') {
      throw new KubectlError('one of src or dest must be a local file specification')
    }
    if (source.file === '' || target.file === '') throw new KubectlError('filepath can not be empty')
    if (source.pod !== '') return copyFromPod(invocation, source, target)
    if (target.pod !== '') return copyToPod(invocation, source, target)
    throw new KubectlError('one of src or dest must be a remote file specification')
  },
})

interface TarCommand extends Omit<RemoteRun, 'signal'> {
  readonly command: readonly string[]
  /** Prints the name of the default container. */
  readonly warn: (line: string) => void
  readonly signal?: AbortSignal
}

/** Throws ExitError with the exit code of a failed command. */
async function runIn(invocation: CpInvocation, spec: FileSpec, running: TarCommand): Promise<void> {
  const { flags, session, signal } = invocation
  const namespace = spec.namespace || (await session.namespace()).namespace
  const pod = await (await session.rest()).json<Pod>(resourcePath('v1/pods', namespace, spec.pod))
  const { phase = '' } = pod.status ?? {}
  if (phase === 'Succeeded' || phase === 'Failed') {
    throw new KubectlError(`cannot exec into a container in a completed pod; current phase is ${phase}`)
  }
  if (flags.container !== '' && findContainer(pod, flags.container) === undefined) {
    throw noSuchContainer(pod, flags.container)
  }
  const { container } = chosenContainer(pod, flags.container, running.warn)
  const { command } = running
  const target = { namespace, pod: spec.pod, container: container.name, subresource: 'exec', command } as const
  await runRemote(invocation, target, { streams: running.streams, signal: running.signal ?? signal })
}

async function copyToPod(invocation: CpInvocation, source: FileSpec, target: FileSpec): Promise<void> {
  const { flags, cwd, stdout, stderr } = invocation
  const from = resolve(cwd, source.file)
  await stat(from).catch((cause: unknown) => {
    throw new KubectlError(`${source.file} doesn't exist in local filesystem`, { cause })
  })
  const isFolder = await isRemoteFolder(invocation, target)
  const file = isFolder ? joined(target.file, basename(from)) : target.file
  const folder = posix.dirname(file)
  const keeping = flags['no-preserve'] ? ['--no-same-permissions', '--no-same-owner'] : []
  const command = ['tar', ...keeping, '-xmf', '-', ...(folder === '' ? [] : ['-C', folder])]
  await runIn(invocation, target, {
    command,
    streams: {
      stdin: archiveOf(from, posix.basename(posix.normalize(file))),
      stdout: writerTo(stdout),
      stderr: writerTo(stderr),
    },
    warn: (line) => stderr.write(line),
  })
}

async function isRemoteFolder(invocation: CpInvocation, { namespace, pod, file }: FileSpec): Promise<boolean> {
  const drop = (): Promise<void> => Promise.resolve()
  const running = { command: ['test', '-d', file], streams: { stdout: drop, stderr: drop }, warn: () => undefined }
  return runIn(invocation, { namespace, pod, file }, running).then(
    () => true,
    () => false,
  )
}

/** Writes an archive of the file or folder under another name. */
async function* archiveOf(from: string, name: string): AsyncGenerator<Buffer> {
  yield* entriesOf(from, name)
  yield TAR_END
}

async function* entriesOf(from: string, name: string): AsyncGenerator<Buffer> {
  const is = await lstat(from)
  const { size } = is
  const modifiedS = Math.max(0, Math.floor(is.mtimeMs / 1000))
  const head = { mode: is.mode & 0o7777, uid: is.uid, gid: is.gid, modifiedS }
  if (is.isDirectory()) {
    const names = (await readdir(from)).sort()
    if (names.length === 0) yield tarHeaders({ ...head, name: `${name}/` }, 0)
    for (const each of names) yield* entriesOf(resolve(from, each), `${name}/${each}`)
  } else if (is.isSymbolicLink()) {
    yield tarHeaders({ ...head, name, link: await readlink(from) }, 0)
  } else {
    yield tarHeaders({ ...head, name }, size)
    let sent = 0
    for await (const piece of createReadStream(from, { end: Math.max(0, size - 1) })) {
      sent += (piece as Buffer).length
      if (size > 0) yield piece as Buffer
    }
    if (size > 0 && sent < size) throw new KubectlError(`${from} became shorter while it was copied`)
    yield tarPadding(size)
  }
}

async function copyFromPod(invocation: CpInvocation, source: FileSpec, target: FileSpec): Promise<void> {
  const { cwd, stderr } = invocation
  const prefix = archivePrefix(source.file)
  const links = new SkippedLinks(invocation, source)
  try {
    for await (const entry of readTar(piecesOf(invocation, source))) {
      if (!entry.name.startsWith(prefix)) throw new KubectlError('tar contents corrupted')
      const file = joined(target.file, remotePath(entry.name.slice(prefix.length)))
      if (!isWithin(target.file, file)) {
        stderr.write(`warning: file ${goQuote(file)} is outside target destination, skipping\n`)
        continue
      }
      await mkdir(resolve(cwd, dirname(file)), { recursive: true, mode: 0o755 })
      if (entry.type === 'folder') await mkdir(resolve(cwd, file), { recursive: true, mode: 0o755 })
      else if (entry.type === 'link') links.skip(file, entry)
      else await writeTo(resolve(cwd, file), file, entry)
    }
  } catch (error) {
    throw error instanceof TarError ? new KubectlError('unexpected EOF', { cause: error }) : error
  }
}

async function writeTo(path: string, name: string, { content }: TarEntry): Promise<void> {
  await pipeline(Readable.from(content), createWriteStream(path)).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === undefined) throw cause
    const text = cause.code === 'EISDIR' ? `open ${name}: is a directory` : goFileError(name, cause)
    throw new KubectlError(text, { cause })
  })
}

/** Links could lead outside of the target, so each is skipped with a warning. */
class SkippedLinks {
  readonly #invocation: CpInvocation
  readonly #source: FileSpec
  #isFirst = true

  constructor(invocation: CpInvocation, source: FileSpec) {
    this.#invocation = invocation
    this.#source = source
  }

  skip(file: string, { link }: TarEntry): void {
    const { stderr, path } = this.#invocation
    const { namespace, pod, file: from } = this.#source
    const parent = path.replace(/ cp$/, '')
    const hint = ` (consider using "${parent} exec -n ${goQuote(namespace)} ${goQuote(pod)} -- tar cf - ${goQuote(from)} | tar xf -")`
    stderr.write(`warning: skipping symlink: ${goQuote(file)} -> ${goQuote(link)}${this.#isFirst ? hint : ''}\n`)
    this.#isFirst = false
  }
}

/** Streams the archive, and resumes an interrupted stream up to the number of retries. */
async function* piecesOf(invocation: CpInvocation, source: FileSpec): AsyncGenerator<Buffer> {
  const { flags, stdout } = invocation
  let received = 0
  for (let tries = 0; ; tries++) {
    const over = new AbortController()
    try {
      for await (const piece of attempt(invocation, source, { from: received + 1, signal: over.signal })) {
        received += piece.length
        yield piece
      }
      if (flags.retries === 0) return
    } catch (error) {
      const isLast = flags.retries >= 0 && tries >= flags.retries
      if (isLast || error instanceof ExitError) throw error
    } finally {
      over.abort()
    }
    if (flags.retries >= 0 && tries >= flags.retries) {
      stdout.write(`Dropping out copy after ${tries} retries\n`)
      return
    }
    stdout.write(`Resuming copy at ${received} bytes, retry ${tries + 1}/${flags.retries}\n`)
  }
}

function attempt(
  invocation: CpInvocation,
  source: FileSpec,
  { from, signal }: { readonly from: number; readonly signal: AbortSignal },
): AsyncIterable<Buffer> {
  const { flags, stdout } = invocation
  const received = new PassThrough()
  const quoted = `'${source.file.replaceAll("'", "'\\''")}'`
  const command =
    flags.retries === 0 ? ['tar', 'cf', '-', source.file] : ['sh', '-c', `tar cf - ${quoted} | tail -c+${from}`]
  const running = {
    command,
    // The error output of tar goes to the stream that upstream uses.
    streams: { stdout: writerTo(received), stderr: writerTo(stdout) },
    warn: (line: string) => void stdout.write(line),
    signal: AbortSignal.any([signal, invocation.signal]),
  }
  runIn(invocation, source, running).then(
    () => received.end(),
    (error: unknown) => received.destroy(asError(error)),
  )
  return received
}
