/** The first steps of a set-up: images, programs, and where they are found. */
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

/** That of an image by its name; undefined: it is not here. */
function imageId({ host }: SetupContext, image: string): Promise<string | undefined> {
  return host.processes.output('docker', ['image', 'inspect', '--format', '{{.Id}}', image]).then(
    (text) => text.trim(),
    () => undefined,
  )
}

/** An image of the system that runs on this very kernel: one of another build does not. */
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

/** Unpacked into a folder, with a mark that is written when all of it is there. */
interface Archive {
  readonly name: string
  readonly url: (context: SetupContext) => string
  readonly release: (context: SetupContext) => string
  /** SHA-256 that the administrator gave. */
  readonly digest: (context: SetupContext) => string | undefined
  readonly file: (context: SetupContext) => string
  readonly into: (context: SetupContext) => string
  readonly mark: (context: SetupContext) => string
  readonly folder: (context: SetupContext) => string
  /** Services that run what is in it: Windows replaces nothing that runs. They are started again by later steps. */
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

/** Leaves a file only if it has the SHA-256 that was given, or that its publisher put beside it. Throws CrashError. */
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
  if (digest === undefined) throw new CrashError(`${url}.sha256 holds no SHA-256; give the digest with a flag`)
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

/** Earlier set-ups gave the administrator's kubeconfig to every user of the machine. */
async function forgetKubeconfig({ environment }: SetupContext['host'], places: SetupContext['places']): Promise<void> {
  if ((await environment.ofMachine(KUBECONFIG)) === places.kubeconfig) await environment.remove(KUBECONFIG)
}

export const SOFTWARE_STEPS: readonly Step<SetupContext>[] = [
  baseImage('nanoserver', ({ settings }) => settings.nanoServerImageTag),
  baseImage('servercore', ({ settings }) => settings.serverCoreImageTag),
  {
    name: 'image kubeletwin/pause',
    isDone: async (context) =>
      !usesDocker(context.settings) || (await imageId(context, 'kubeletwin/pause')) !== undefined,
    async take({ host, places }) {
      await host.files.write(`${places.pause}\\Dockerfile`, PAUSE_DOCKERFILE)
      await host.processes.output('docker', ['build', '-t', 'kubeletwin/pause', places.pause])
    },
    async undo({ host, places }) {
      await host.files.empty(places.pause)
      await host.files.remove(places.pause)
    },
  },
  archive({
    name: 'programs of Kubernetes',
    url: ({ settings }) => RELEASES.kubernetes(settings.release),
    release: ({ settings }) => settings.release,
    digest: ({ settings }) => settings.digests.kubernetes,
    file: ({ places }) => places.archive,
    into: ({ settings }) => settings.baseDir,
    mark: ({ places }) => places.releaseMark,
    folder: ({ places }) => places.kubernetes,
    users: ['Kubeproxy', 'Kubelet'],
  }),
  {
    name: 'PATH of the machine',
    async isDone({ host, places }) {
      const path = (await host.environment.ofMachine(PATH)) ?? ''
      return path === pathWith(path, places.bin) && (await host.environment.ofMachine(KUBECONFIG)) !== places.kubeconfig
    },
    async take({ host, places }) {
      await host.environment.set(PATH, pathWith((await host.environment.ofMachine(PATH)) ?? '', places.bin))
      await forgetKubeconfig(host, places)
    },
    async undo({ host, places }) {
      const path = (await host.environment.ofMachine(PATH)) ?? ''
      const without = pathWithout(path, places.bin)
      if (without !== path) await host.environment.set(PATH, without)
      await forgetKubeconfig(host, places)
    },
  },
  {
    name: 'flanneld',
    isDone: async ({ host, places, settings }) =>
      settings.ownFlanneld !== undefined || (await host.files.exists(places.flanneld)),
    async take(context) {
      const { host, places, settings } = context
      // Under another name until all of it is there.
      const partial = `${places.flanneld}.part`
      await downloadVerified(context, { url: RELEASES.flanneld, path: partial, digest: settings.digests.flanneld })
      await host.files.move(partial, places.flanneld)
    },
    async undo({ host, places }) {
      await host.files.remove(`${places.flanneld}.part`)
      await host.files.remove(places.flanneld)
    },
  },
  archive({
    name: 'plugins of CNI',
    url: () => RELEASES.cni,
    release: () => CNI_RELEASE,
    digest: ({ settings }) => settings.digests.cni,
    file: ({ places }) => places.cniArchive,
    into: ({ places }) => places.cni,
    mark: ({ places }) => places.cniMark,
    folder: ({ places }) => places.cni,
    users: [],
  }),
]
