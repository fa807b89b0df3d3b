/**
 * Runs an operator made with controller-runtime (beside this file, in Go) against upstream's kube-apiserver and ours:
 * `node test/upstream/controller-runtime.ts [--ours-only]`. It has a kind in two versions with conversion, mutation,
 * validation and leader election; its client then uses every operation. The responses of both servers must be identical
 * except for uids, times, versions and ports. Exits with 1 on a difference. Needs Go to build it once, and root to add
 * an address.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { ADDRESS, liveThrough, type Stage } from './controller-runtime/story.ts'
import { freePort } from './kube-apiserver.ts'
import { type Server, startOurs, writeKubeconfig } from './ours.ts'
import { UPSTREAM_VERSION } from './programs.ts'
import { startReference } from './reference.ts'
import { changeAddress } from './sample-apiserver.ts'

const { values: options } = parseArgs({ options: { 'ours-only': { type: 'boolean' } } })

/** The version that is made for the Kubernetes we answer for. */
const VERSION = 'v0.24.1'
const SOURCES = join(import.meta.dirname, 'controller-runtime')
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'controller-runtime')

const MODULE = `module hyperkube.upstream/operator
go 1.26.0
require sigs.k8s.io/controller-runtime ${VERSION}
${['api', 'apiextensions-apiserver', 'apimachinery', 'client-go']
  .map((name) => `require k8s.io/${name} ${UPSTREAM_VERSION.replace('v1.', 'v0.')}\n`)
  .join('')}`

/** Builds the operator where it is not there yet, or has been changed. */
async function build(): Promise<string> {
  const program = join(FOLDER, 'operator')
  const names = readdirSync(SOURCES).filter((name) => name.endsWith('.go'))
  const textOf = (folder: string): string =>
    names.map((name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '')).join()
  if (existsSync(program) && textOf(FOLDER) === textOf(SOURCES)) return program
  await mkdir(FOLDER, { recursive: true })
  await rm(program, { force: true })
  for (const name of names) cpSync(join(SOURCES, name), join(FOLDER, name))
  await writeFile(join(FOLDER, 'go.mod'), MODULE)
  const env = { ...process.env, GOFLAGS: `${process.env['GOFLAGS'] ?? ''} -mod=mod`.trim(), CGO_ENABLED: '0' }
  const { status } = spawnSync('go', ['build', '-o', program, '.'], { cwd: FOLDER, env, stdio: 'inherit' })
  if (status !== 0) throw new Error('The operator was not built')
  return program
}

/** Writes the operator's serving certificate and the CA for its webhooks. */
async function writeCertificates(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const authority = createAuthority({ commonName: 'operator-ca' }, { clock: realClock, random: secureRandom })
  const names = { dns: ['widgets.default.svc'], ips: [ADDRESS] }
  const shown = authority.issue({ commonName: 'widgets.default.svc', names, purpose: 'server' })
  await writeFile(join(folder, 'tls.crt'), shown.certificatePem)
  await writeFile(join(folder, 'tls.key'), shown.keyPem, { mode: 0o600 })
  await writeFile(join(folder, 'ca.crt'), authority.certificatePem)
  return folder
}

async function tell(folder: string, program: string, server: Server): Promise<string[]> {
  const stage: Stage = {
    server,
    folder,
    program,
    kubeconfig: await writeKubeconfig(join(folder, 'kubeconfig'), server),
    certificates: await writeCertificates(join(folder, 'certificates')),
    port: await freePort(),
  }
  return liveThrough(stage)
}

function compare(theirs: readonly string[], ours: readonly string[]): number {
  let differing = 0
  for (let at = 0; at < Math.max(theirs.length, ours.length); at++) {
    if (theirs[at] === ours[at]) continue
    differing++
    process.stdout.write(`\n- ${theirs[at] ?? '(nothing)'}\n+ ${ours[at] ?? '(nothing)'}\n`)
  }
  return differing
}

async function main(): Promise<void> {
  const program = await build()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-controller-runtime-'))
  const [theirs, ours] = [join(folder, 'theirs'), join(folder, 'ours')]
  for (const one of [theirs, ours]) await mkdir(one)
  await using closing = new AsyncDisposableStack()
  changeAddress('add', ADDRESS)
  closing.defer(() => void changeAddress('del', ADDRESS))
  try {
    const own = await startOurs(ours)
    closing.defer(() => own.stop())
    const actual = await tell(ours, program, own)
    for (const line of actual) process.stdout.write(`${line}\n`)
    if (options['ours-only'] === true) return
    const reference = await startReference(theirs)
    closing.defer(() => reference.stop())
    const differing = compare(await tell(theirs, program, reference), actual)
    process.stdout.write(`\n${actual.length} answers, ${differing} differ from upstream\n`)
    process.exitCode = differing === 0 ? 0 : 1
    await rm(folder, { recursive: true, force: true })
  } catch (error) {
    process.stderr.write(`The logs are in ${folder}\n`)
    throw error
  }
}

await main()
