/** The first steps of a Windows worker's set-up: images, programs and PATH. */
import { CrashError } from '../../outcome.ts'
import type { Step } from '../../steps.ts'
import type { SetupContext } from './context.ts'
import { PAUSE_DOCKERFILE } from './documents.ts'
import { usesDocker } from './settings.ts'

const DOWNLOAD_MS = 600_000
const CNI_RELEASE = '0.8.2'
const FLANNEL_RELEASE = '0.11.0'
const RELEASES = {
  kubernetes: (release: string) => `https://dl.k8s.io/v${release}/kubernetes-node-windows-amd64.tar.gz`,
  cni: `https://github.com/containernetworking/plugins/releases/download/v${CNI_RELEASE}/cni-plugins-windows-amd64-v${CNI_RELEASE}.tgz`,
  flanneld: `https://github.com/flannel-io/flannel/releases/download/v${FLANNEL_RELEASE}/flanneld.exe`,
}

const IMAGES = 'mcr.microsoft.com/windows'

/** The id of an image; undefined if it is missing. */
function imageId({ host }: SetupContext, image: string): Promise<string | undefined> {
  return host.processes.output('docker', ['image', 'inspect', '--format', '{{.Id}}', image]).then(
    (text) => text.trim(),
    () => undefined,
  )
}

/** The base image for this kernel; Windows containers need the same build. */
function baseImage(name: string, tagOf: (context: SetupContext) => string): Step<SetupContext> {
  const repository = `${IMAGES}/${name}`
  return {
    name: `image ${name}`,
    async isDone(context) {
      if (!usesDocker(context.settings)) return true
      const id = await imageId(context, `${repository}:${tagOf(context)}`)
      return id !== undefined && id === (await imageId(context, `${repository}:latest`))
    },
    async take(context) {
      const image = `${repository}:${tagOf(context)}`
      const docker = (...args: readonly string[]): Promise<string> => context.host.processes.output('docker', args)
      if ((await imageId(context, image)) === undefined) await docker('pull', image)
      await docker('run', '--rm', image, 'cmd', '/c', 'echo runs')
      await docker('tag', image, `${repository}:latest`)
    },
  }
}

/** An archive that is extracted to a folder, with a marker that is written last. */
interface Archive {
  readonly name: string
  readonly url: (context: SetupContext) => string
  readonly release: (context: SetupContext) => string
  /** The SHA-256 from the administrator. */
  readonly digest: (context: SetupContext) => string | undefined
  readonly file: (context: SetupContext) => string
  readonly into: (context: SetupContext) => string
  readonly mark: (context: SetupContext) => string
  readonly folder: (context: SetupContext) => string
  /**
   * Services that use its files and must stop, because Windows cannot replace running programs. Later steps start them
   * again.
   */
  readonly users: readonly string[]
}

function archive({ name, url, release, digest, file, into, mark, folder, users }: Archive): Step<SetupContext> {
  return {
    name,
    isDone: async (context) => (await context.host.files.read(mark(context))) === release(context),
    async take(context) {
      const { files, processes, services } = context.host
      for (const user of users) if ((await services.state(user)) === 'running') await services.stop(user)
      await downloadVerified(context, { url: url(context), path: file(context), digest: digest(context) })
      await files.makeFolder(into(context))
      await processes.output('tar.exe', ['-xzf', file(context), '-C', into(context)])
      await files.remove(file(context))
      await files.write(mark(context), release(context))
    },
    async undo(context) {
      const { files } = context.host
      await files.remove(file(context))
      await files.remove(checksumFile(file(context)))
      await files.empty(folder(context))
      await files.remove(folder(context))
    },
  }
}

interface VerifiedDownload {
  readonly url: string
  readonly path: string
  readonly digest: string | undefined
}

/** Keeps a download only if it has the given or published SHA-256. Throws CrashError. */
async function downloadVerified({ host }: SetupContext, { url, path, digest }: VerifiedDownload): Promise<void> {
  const { files } = host
  const expected = (digest ?? (await publishedDigest(host, url, checksumFile(path)))).toLowerCase()
  await files.download(url, path, DOWNLOAD_MS)
  const found = await files.sha256(path)
  if (found === expected) return
  await files.remove(path)
  throw new CrashError(
    `${url} has the SHA-256 ${found}, not ${expected}: it was changed on its way, or is another file`,
  )
}

function checksumFile(path: string): string {
  return `${path}.sha256`
}

/** `DIGEST`, or `DIGEST  NAME` as sha256sum writes it. */
async function publishedDigest({ files }: SetupContext['host'], url: string, path: string): Promise<string> {
  await files.download(`${url}.sha256`, path, DOWNLOAD_MS)
  const text = (await files.read(path)) ?? ''
  await files.remove(path)
  const [, digest] = /^([0-9a-f]{64})(?:\s|$)/i.exec(text.trim()) ?? []
  if (digest === undefined) throw new CrashError(`${url}.sha256 does not contain a SHA-256; set the digest with a flag`)
  return digest
}

const PATH = 'Path'
const KUBECONFIG = 'KUBECONFIG'

function pathWith(path: string, folder: string): string {
  const others = path.split(';').filter((entry) => entry !== '' && entry.toLowerCase() !== folder.toLowerCase())
  return [...others, folder].join(';')
}

function pathWithout(path: string, folder: string): string {
  return path
    .split(';')
    .filter((entry) => entry.toLowerCase() !== folder.toLowerCase())
    .join(';')
}

/** Earlier set-ups exposed the administrator's kubeconfig to all users. */
async function forgetKubeconfig({ environment }: SetupContext['host'], paths: SetupContext['paths']): Promise<void> {
  if ((await environment.ofMachine(KUBECONFIG)) === paths.kubeconfig) await environment.remove(KUBECONFIG)
}

export const SOFTWARE_STEPS: readonly Step<SetupContext>[] = [
  baseImage('nanoserver', ({ settings }) => settings.nanoServerImageTag),
  baseImage('servercore', ({ settings }) => settings.serverCoreImageTag),
  {
    name: 'image kubeletwin/pause',
    isDone: async (context) =>
      !usesDocker(context.settings) || (await imageId(context, 'kubeletwin/pause')) !== undefined,
    async take({ host, paths }) {
      await host.files.write(`${paths.pause}\\Dockerfile`, PAUSE_DOCKERFILE)
      await host.processes.output('docker', ['build', '-t', 'kubeletwin/pause', paths.pause])
    },
    async undo({ host, paths }) {
      await host.files.empty(paths.pause)
      await host.files.remove(paths.pause)
    },
  },
  archive({
    name: 'programs of Kubernetes',
    url: ({ settings }) => RELEASES.kubernetes(settings.release),
    release: ({ settings }) => settings.release,
    digest: ({ settings }) => settings.digests.kubernetes,
    file: ({ paths }) => paths.archive,
    into: ({ settings }) => settings.baseDir,
    mark: ({ paths }) => paths.releaseMark,
    folder: ({ paths }) => paths.kubernetes,
    users: ['Kubeproxy', 'Kubelet'],
  }),
  {
    name: 'PATH of the machine',
    async isDone({ host, paths }) {
      const path = (await host.environment.ofMachine(PATH)) ?? ''
      return path === pathWith(path, paths.bin) && (await host.environment.ofMachine(KUBECONFIG)) !== paths.kubeconfig
    },
    async take({ host, paths }) {
      await host.environment.set(PATH, pathWith((await host.environment.ofMachine(PATH)) ?? '', paths.bin))
      await forgetKubeconfig(host, paths)
    },
    async undo({ host, paths }) {
      const path = (await host.environment.ofMachine(PATH)) ?? ''
      const without = pathWithout(path, paths.bin)
      if (without !== path) await host.environment.set(PATH, without)
      await forgetKubeconfig(host, paths)
    },
  },
  {
    name: 'flanneld',
    isDone: async ({ host, paths, settings }) =>
      settings.ownFlanneld !== undefined || (await host.files.exists(paths.flanneld)),
    async take(context) {
      const { host, paths, settings } = context
      // Under a temporary name until it is complete.
      const partial = `${paths.flanneld}.part`
      await downloadVerified(context, { url: RELEASES.flanneld, path: partial, digest: settings.digests.flanneld })
      await host.files.move(partial, paths.flanneld)
    },
    async undo({ host, paths }) {
      await host.files.remove(`${paths.flanneld}.part`)
      await host.files.remove(paths.flanneld)
    },
  },
  archive({
    name: 'plugins of CNI',
    url: () => RELEASES.cni,
    release: () => CNI_RELEASE,
    digest: ({ settings }) => settings.digests.cni,
    file: ({ paths }) => paths.cniArchive,
    into: ({ paths }) => paths.cni,
    mark: ({ paths }) => paths.cniMark,
    folder: ({ paths }) => paths.cni,
    users: [],
  }),
]
