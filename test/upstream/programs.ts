/**
 * Builds upstream's programs of our version from the Go module proxy, once, into the user's cache folder. The
 * conformance run and benchmarks use them. Nothing of them enters the repository.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

export const UPSTREAM_VERSION = 'v1.36.4'

/** The version the suite itself is built with: another runner would not understand its reports. */
const GINKGO_VERSION = 'v2.28.1'

/** The release that Kubernetes v1.36 is built and tested with. */
export const ETCD_VERSION = 'v3.6.8'

const GO_MINOR = 26
const GO_NEEDED = `Go 1.${GO_MINOR} or later is needed`

/** Go's name of each program's package; the suite is a test binary. */
const PACKAGES = {
  etcd: 'go.etcd.io/etcd/server/v3',
  ginkgo: 'github.com/onsi/ginkgo/v2/ginkgo',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-proxy': 'k8s.io/kubernetes/cmd/kube-proxy',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kubelet: 'k8s.io/kubernetes/cmd/kubelet',
  'e2e.test': 'k8s.io/kubernetes/test/e2e',
  agnhost: 'k8s.io/kubernetes/test/images/agnhost',
  nnp: 'k8s.io/kubernetes/test/images/nonewprivs',
  'sample-apiserver': 'k8s.io/sample-apiserver',
} as const

export type UpstreamProgram = keyof typeof PACKAGES

/** Kubernetes names these by paths inside its own repository, which the module proxy does not have. */
const STAGING = [
  'api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap',
  'code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming',
  'csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator',
  'kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission',
  'sample-apiserver sample-cli-plugin sample-controller streaming',
].flatMap((line) => line.split(' '))

const FOLDER = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'hyperkube', 'upstream', UPSTREAM_VERSION)

/** Where a program is once it has been built. */
export function upstreamPath(name: UpstreamProgram): string {
  return join(FOLDER, name)
}

/** Where the programs are, built now if they are not there yet. Rejects when there is no Go to build them with. */
export async function upstreamPrograms<Name extends UpstreamProgram>(
  names: readonly Name[],
  say: (line: string) => void,
): Promise<Record<Name, string>> {
  const found = names.map((name) => [name, upstreamPath(name)] as const)
  const absent = found.filter(([, path]) => !existsSync(path))
  if (absent.length > 0) await writeModule()
  for (const [name, path] of absent) {
    say(`building ${name} ${UPSTREAM_VERSION} from the Go module proxy (once; minutes)`)
    await build(name, path)
  }
  return Object.fromEntries(found) as Record<Name, string>
}

/** A file of upstream's own repository, as the module proxy delivers it. */
export function upstreamSource(path: string): string {
  const { status, stdout } = spawnSync('go', ['list', '-m', '-f', '{{.Dir}}', 'k8s.io/kubernetes'], {
    cwd: FOLDER,
    encoding: 'utf8',
    env: { ...process.env, GOFLAGS: '-mod=mod' },
  })
  if (status !== 0) throw new Error(`Upstream’s sources cannot be found: ${GO_NEEDED}`)
  return join(stdout.trim(), path)
}

/** Why the programs cannot be had here; undefined when they can. */
export function missingGo(names: readonly UpstreamProgram[]): string | undefined {
  if (names.every((name) => existsSync(upstreamPath(name)))) return undefined
  const { status, stdout } = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' })
  if (status !== 0) return `there is no Go to build them with (${GO_NEEDED})`
  const [major = 0, minor = 0] = stdout.trim().replace('go', '').split('.').map(Number)
  return major > 1 || minor >= GO_MINOR ? undefined : `${stdout.trim()} is too old to build them (${GO_NEEDED})`
}

async function writeModule(): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  const staging = UPSTREAM_VERSION.replace('v1.', 'v0.')
  const lines = [
    'module hyperkube.upstream',
    `go 1.${GO_MINOR}.0`,
    `require k8s.io/kubernetes ${UPSTREAM_VERSION}`,
    `require github.com/onsi/ginkgo/v2 ${GINKGO_VERSION}`,
    `require go.etcd.io/etcd/server/v3 ${ETCD_VERSION}`,
    ...STAGING.flatMap((name) => [
      `require k8s.io/${name} ${staging}`,
      `replace k8s.io/${name} => k8s.io/${name} ${staging}`,
    ]),
    '',
  ]
  await writeFile(join(FOLDER, 'go.mod'), lines.join('\n'))
}

/** Builds beside the final name and renames, so that a build cut short is never taken for a program. */
async function build(name: UpstreamProgram, path: string): Promise<void> {
  const unfinished = `${path}.building`
  const version = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((home) => [
    '-X',
    `${home}.gitVersion=${UPSTREAM_VERSION}`,
    '-X',
    `${home}.gitMajor=1`,
    '-X',
    `${home}.gitMinor=36`,
  ])
  const verb = name === 'e2e.test' ? ['test', '-c', '-vet=off'] : ['build']
  await go([...verb, '-o', unfinished, '-ldflags', ['-s', '-w', ...version].join(' '), PACKAGES[name]])
  await rename(unfinished, path)
}

function go(args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    // Flags of the user (`-p=1` on a busy machine) stay in effect.
    const env = { ...process.env, GOFLAGS: `${process.env.GOFLAGS ?? ''} -mod=mod`.trim(), CGO_ENABLED: '0' }
    const child = spawn('go', args, { cwd: FOLDER, env, stdio: ['ignore', 'inherit', 'inherit'] })
    child.on('error', (error) =>
      reject(new Error(`Upstream’s programs cannot be built: ${GO_NEEDED}`, { cause: error })),
    )
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`go ${args[0]} ended with ${code}`))))
  })
}

if (import.meta.main) {
  const known = Object.keys(PACKAGES) as UpstreamProgram[]
  const wanted = process.argv.slice(2) as UpstreamProgram[]
  const paths = await upstreamPrograms(wanted.length > 0 ? wanted : known, (line) => process.stderr.write(`${line}\n`))
  process.stdout.write(
    Object.values(paths)
      .map((path) => `${path}\n`)
      .join(''),
  )
}
