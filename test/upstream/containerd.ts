/**
 * Builds containerd 2.x, which Debian does not package, from the Go module proxy into the user's cache folder. It also
 * builds a matching runc if a C compiler and libseccomp are present. The tests of containerd use it with
 * `HYPERKUBE_CONTAINERD=$(node test/upstream/containerd.ts)`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const CONTAINERD = 'github.com/containerd/containerd/v2'
const CONTAINERD_VERSION = 'v2.4.2'
const RUNC = 'github.com/opencontainers/runc'
const RUNC_VERSION = 'v1.5.2'

const FOLDER = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'hyperkube',
  `containerd-${CONTAINERD_VERSION}`,
)

const SHIM = 'containerd-shim-runc-v2'

/** Builds what is not there yet. Throws when there is no Go, or it fails. Without runc the system's is used. */
function buildContainerd(say: (line: string) => void): string {
  mkdirSync(FOLDER, { recursive: true })
  const requires = [`require ${CONTAINERD} ${CONTAINERD_VERSION}`, `require ${RUNC} ${RUNC_VERSION}`]
  writeFileSync(join(FOLDER, 'go.mod'), ['module hyperkube.containerd', 'go 1.26.0', ...requires, ''].join('\n'))
  const version = `-X ${CONTAINERD}/version.Version=${CONTAINERD_VERSION}`
  for (const name of [SHIM, 'containerd'])
    build(name, `${CONTAINERD}/cmd/${name}`, { flags: ['-ldflags', `-s -w ${version}`], say })
  try {
    build('runc', RUNC, {
      flags: ['-tags', 'seccomp', '-ldflags', `-s -w -X main.version=${RUNC_VERSION}`],
      cgo: true,
      say,
    })
  } catch {
    say('runc needs a C compiler and libseccomp (Debian: gcc libseccomp-dev); the runc of this machine is used')
  }
  return FOLDER
}

interface BuildOptions {
  readonly flags: readonly string[]
  readonly cgo?: boolean
  readonly say: (line: string) => void
}

/** Builds beside the final name and renames, so that a build cut short is never taken for a program. */
function build(name: string, source: string, { flags, cgo = false, say }: BuildOptions): void {
  const path = join(FOLDER, name)
  if (existsSync(path)) return
  say(`building ${name} from the Go module proxy (once; minutes)`)
  const env = {
    ...process.env,
    GOFLAGS: `${process.env['GOFLAGS'] ?? ''} -mod=mod`.trim(),
    CGO_ENABLED: cgo ? '1' : '0',
  }
  const args = ['build', '-trimpath', ...flags, '-o', `${path}.building`, source]
  const { status } = spawnSync('go', args, { cwd: FOLDER, env, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${name} was not built`)
  renameSync(`${path}.building`, path)
}

if (import.meta.main) {
  process.stdout.write(`${buildContainerd((line) => void process.stderr.write(`${line}\n`))}\n`)
}
