/**
 * Tests kubectl on real containers: `node test/upstream/containers.ts`. Runs as root. It starts `hyperkube up` with
 * locally built images. Then it tests run, logs -f, exec with and without a resized terminal, cp, attach, port-forward,
 * top and debug. It uses three versions of kubectl: Debian's 1.20 (SPDY), upstream's and ours (WebSocket). Exits with 1
 * on a failure, and leaves nothing on the machine. With `--through-server`, all kubectls reach the cluster through
 * `hyperkube server` and its agent.
 */
import { type ChildProcessByStdio, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

import { realClock, sleep } from '#lib/clock.ts'

import { unpacked } from '../images/debian.ts'
import { makeImages } from '../images/main.ts'
import { startManagementServer } from './management-server.ts'
import { HYPERKUBE } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

const LIMIT_MS = 60_000
const isThroughServer = process.argv.includes('--through-server')
const folder = await mkdtemp(join(tmpdir(), 'hyperkube-containers-'))
const ownKubeconfig = join(folder, 'kubeconfig')
/** The one that the kubectls use. */
let kubeconfig = ownKubeconfig
const data = `--data-dir=${join(folder, 'data')}`
const say = (line: string): void => void process.stderr.write(`${line}\n`)
let failures = 0

function judge(what: string, isRight: boolean, output: string): void {
  process.stdout.write(`${isRight ? 'ok ' : 'NOT'} ${what}\n`)
  if (isRight) return
  failures += 1
  process.stdout.write(`    ${output.replaceAll('\n', '\n    ')}\n`)
}

/** The output at the first match, or at the timeout. */
async function until(said: () => string, expected: RegExp): Promise<string> {
  const endMs = realClock.elapsed() + LIMIT_MS
  while (!expected.test(said()) && realClock.elapsed() < endMs) await sleep(realClock, 100)
  return said()
}

type Talk = ChildProcessByStdio<Writable, Readable, Readable>

interface Conversation {
  readonly child: Talk
  said: string
}

function converse(program: string, args: readonly string[]): Conversation {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const conversation = { child, said: '' }
  const hear = (text: string): void => void (conversation.said += text.replaceAll('\r', ''))
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', hear)
  return conversation
}

async function end({ child }: Conversation): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
}

/** One kubectl, and pods of its own. */
class Trial {
  readonly #name: string
  readonly #program: string
  readonly #pod: string
  readonly #web: string

  constructor(name: string, program: string) {
    this.#name = name
    this.#program = program
    const suffix = name.replaceAll('.', '-')
    this.#pod = `app-${suffix}`
    this.#web = `web-${suffix}`
  }

  #args(...args: string[]): string[] {
    return [`--kubeconfig=${kubeconfig}`, ...args]
  }

  #kubectl(...args: string[]): string {
    const { stdout, stderr } = spawnSync(this.#program, this.#args(...args), { encoding: 'utf8' })
    return `${stdout}${stderr}`.trim()
  }

  #converse(...args: string[]): Conversation {
    return converse(this.#program, this.#args(...args))
  }

  #step(what: string, output: string, expected: RegExp): void {
    judge(`${this.#name}: ${what}`, expected.test(output), output)
  }

  async talk(): Promise<void> {
    const script = 'i=0; while true; do i=$((i+1)); echo line $i; sleep 1; done'
    this.#step('run', this.#kubectl('run', this.#pod, ...BUSYBOX, '--', 'sh', '-c', script), /created/)
    const ready = ['wait', '--for=condition=Ready', `pod/${this.#pod}`, '--timeout=60s']
    this.#step('wait', this.#kubectl(...ready), /condition met/)
    const logs = this.#converse('logs', '-f', this.#pod)
    this.#step('logs -f', await until(() => logs.said, /line 4/), /^line 1\nline 2\nline 3\nline 4/)
    await end(logs)
    const said = this.#kubectl('exec', this.#pod, '--', 'sh', '-c', 'echo out; echo err >&2; exit 7')
    this.#step('exec', said, /out[^]*err[^]*exit code 7/)
    // Newer ones begin with WebSockets and hide it when that does not work.
    const told = this.#kubectl('exec', '-v=4', this.#pod, '--', 'echo', 'there')
    this.#step('exec without a second try', told, /^(?![^]*fallback)[^]*there/)
    const attached = this.#converse('attach', this.#pod)
    this.#step('attach', await until(() => attached.said, /line \d+\nline/), /line \d+\nline/)
    await end(attached)
  }

  async resize(): Promise<void> {
    const command = [this.#program, ...this.#args('exec', '-it', this.#pod, '--', 'sh')].join(' ')
    const terminal = converse('script', ['-qfec', `tty; stty rows 33 cols 99; exec ${command}`, '/dev/null'])
    await until(() => terminal.said, /#/)
    terminal.child.stdin.write('stty size\n')
    this.#step('exec -it', await until(() => terminal.said, /33 99/), /33 99/)
    const [device = ''] = /\/dev\/pts\/\d+/.exec(terminal.said) ?? []
    spawnSync('stty', ['-F', device, 'rows', '20', 'cols', '50'])
    // No event reports the arrival of a new size.
    terminal.child.stdin.write('while ! stty size | grep "20 50"; do sleep 0.1; done; exit\n')
    this.#step('exec -it, resized', await until(() => terminal.said, /^20 50$/m), /^20 50$/m)
    await end(terminal)
  }

  async copy(): Promise<void> {
    const file = join(folder, 'file')
    await writeFile(file, `of ${this.#name}\n`)
    const copied = this.#kubectl('cp', file, `${this.#pod}:/tmp/file`)
    this.#step('cp to', copied + this.#kubectl('exec', this.#pod, '--', 'cat', '/tmp/file'), /^of /)
    this.#kubectl('cp', `${this.#pod}:/tmp/file`, `${file}.back`)
    this.#step('cp from', await readFile(`${file}.back`, 'utf8').catch(String), new RegExp(`^of ${this.#name}\n$`))
    await rm(`${file}.back`, { force: true })
  }

  async forward(): Promise<void> {
    this.#kubectl('run', this.#web, '--image=docker.io/library/nginx:latest', '--image-pull-policy=Never')
    this.#kubectl('wait', '--for=condition=Ready', `pod/${this.#web}`, '--timeout=60s')
    const forwarded = this.#converse('port-forward', `pod/${this.#web}`, ':80')
    const [, port = ''] = /127\.0\.0\.1:(\d+)/.exec(await until(() => forwarded.said, /127\.0\.0\.1:\d+/)) ?? []
    const page = await fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.text(), String)
    this.#step('port-forward to nginx', page, /Welcome to nginx!/)
    await end(forwarded)
  }

  async look(): Promise<void> {
    const pods = new RegExp(`^${this.#pod}\\s+[1-9]\\d*m\\s+\\d+Mi`, 'm')
    this.#step('top pods', await until(() => this.#kubectl('top', 'pods'), pods), pods)
    const nodes = /\s[1-9]\d*m\s+\d+%\s+[1-9]\d*Mi/
    this.#step('top nodes', await until(() => this.#kubectl('top', 'nodes'), nodes), nodes)
  }

  async debug(): Promise<void> {
    const looker = ['--container=looker', '--', 'sh', '-c', 'echo looking; sleep 30']
    this.#kubectl('debug', this.#pod, ...BUSYBOX, ...looker)
    const said = await until(() => this.#kubectl('logs', this.#pod, '-c', 'looker'), /^looking$/)
    this.#step('debug', said, /^looking$/)
  }

  leave(): void {
    const said = this.#kubectl('delete', 'pod', this.#pod, this.#web, '--grace-period=1')
    this.#step('delete', said, /deleted[^]*deleted/)
  }
}

const BUSYBOX = ['--image=docker.io/library/busybox:latest', '--image-pull-policy=Never']

/** `isOld`: kubectl before 1.22 creates ephemeral containers through an API that current servers lack. */
async function tryAll(name: string, program: string, isOld: boolean): Promise<void> {
  const trial = new Trial(name, program)
  await trial.talk()
  await trial.resize()
  await trial.copy()
  await trial.forward()
  await trial.look()
  if (!isOld) await trial.debug()
  trial.leave()
}

const programs = await upstreamPrograms(['kubectl'], say)
const archives = await makeImages(join(folder, 'images'), ['busybox', 'nginx'], say)
const flags = ['up', '--runtime=containerd', data, `--kubeconfig=${ownKubeconfig}`, '--secure-port=0', '-o=json']
const cluster = converse(HYPERKUBE, flags)
await using closing = new AsyncDisposableStack()
try {
  const ready = await until(() => cluster.said, /\n/)
  judge('up with containers', /"runtime":"containerd"/.test(ready), ready)
  for (const archive of archives) execFileSync(HYPERKUBE, ['image', 'load', data, archive], { stdio: 'ignore' })
  if (isThroughServer) {
    const server = closing.use(await startManagementServer(join(folder, 'server')))
    kubeconfig = await server.importCluster('containers', ownKubeconfig)
    judge('import into the management server', true, '')
  }
  await tryAll('1.20', join(unpacked(['kubernetes-client'], say), 'usr', 'bin', 'kubectl'), true)
  await tryAll('1.36', programs.kubectl, false)
  await symlink(HYPERKUBE, join(folder, 'kubectl'))
  await tryAll('ours', join(folder, 'kubectl'), false)
} finally {
  await closing.disposeAsync()
  await end(cluster)
  execFileSync(HYPERKUBE, ['reset', data], { stdio: 'ignore' })
  await rm(folder, { recursive: true, force: true })
}
process.stdout.write(failures === 0 ? 'all checks passed\n' : `${failures} checks failed\n`)
process.exitCode = failures === 0 ? 0 : 1
