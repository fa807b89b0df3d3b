/** Builds Go programs from their published modules, and keeps each in the user's cache folder for later runs. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, join } from 'node:path'

/** Where the program is that a module with its version, as `go install` takes it, is built to; built now if it is not there yet. */
export function goProgram(module: string): string {
  const name = basename(module.split('@')[0] ?? '')
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'hyperkube', name)
  const program = join(folder, name)
  if (existsSync(program)) return program
  const env = { ...process.env, GOBIN: folder, CGO_ENABLED: '0' }
  const { status } = spawnSync('go', ['install', module], { cwd: tmpdir(), env, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${module} was not built`)
  return program
}

/**
 * A program of our own on packages of others: one file of Go beside a script. Built when it is not there yet, or has been changed, into a folder of this
 * name in the user's cache. `local` has folders with the source of modules that no proxy has.
 */
export function ownGoProgram(
  name: string,
  source: string,
  needs: Readonly<Record<string, string>> = {},
  local: Readonly<Record<string, string>> = {},
): string {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'hyperkube', name)
  const [program, copy] = [join(folder, name), join(folder, 'main.go')]
  if (existsSync(program) && readFileSync(copy, 'utf8') === readFileSync(source, 'utf8')) return program
  mkdirSync(folder, { recursive: true })
  const required = Object.entries(needs).map(([module, version]) => `require ${module} ${version}\n`)
  const replaced = Object.entries(local).map(([module, path]) => `replace ${module} => ${path}\n`)
  const lines = [...required, ...replaced].join('')
  writeFileSync(join(folder, 'go.mod'), `module hyperkube.upstream/${name}\ngo 1.26.0\n${lines}`)
  copyFileSync(source, copy)
  const env = { ...process.env, GOFLAGS: '-mod=mod', CGO_ENABLED: '0' }
  const unfinished = `${program}.building`
  const { status } = spawnSync('go', ['build', '-o', unfinished, '.'], { cwd: folder, env, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${name} was not built`)
  renameSync(unfinished, program)
  return program
}

const FLANNEL = { module: 'github.com/flannel-io/flannel', version: 'v0.26.7' }

/**
 * flannel's daemon. `go install` would ask which versions there are, to tell whether this one is deprecated, which not every proxy says of it: a module
 * of our own that requires it needs the one version only. It has a part in C.
 */
export function buildFlannel(): string {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'hyperkube', 'flannel')
  const program = join(folder, 'flanneld')
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  const { module, version } = FLANNEL
  writeFileSync(join(folder, 'go.mod'), `module hyperkube.flannel\ngo 1.26.0\nrequire ${module} ${version}\n`)
  const env = { ...process.env, GOFLAGS: `${process.env.GOFLAGS ?? ''} -mod=mod`.trim() }
  const unfinished = `${program}.building`
  const { status } = spawnSync('go', ['build', '-o', unfinished, module], { cwd: folder, env, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${module} ${version} was not built`)
  renameSync(unfinished, program)
  return program
}

export const buildCoreDns = (): string => goProgram('github.com/coredns/coredns@v1.15.0')

/** Helm of the third generation, which charts are written for. */
export const buildHelm = (): string => goProgram('helm.sh/helm/v3/cmd/helm@v3.22.0')
