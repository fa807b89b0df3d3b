/**
 * Tests the first steps of a new user: `node test/upstream/newcomer.ts [--picture]`. It runs `npm start` in a
 * terminal, then typical commands with the kubectl of the machine. They roll out, break, roll back, scale, autoscale,
 * use volumes, run jobs, drain, and handle a failed node. After Ctrl-C and a restart everything must still exist.
 * Exits with 1 if a step fails. `--picture` draws docs/newcomer.svg from the terminal.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { parseArgs } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

import { FILES, type Step, STORY } from './newcomer/story.ts'
import { terminalPicture } from './newcomer/terminal-picture.ts'

const { values: options } = parseArgs({ options: { picture: { type: 'boolean' } } })

const ROOT = join(import.meta.dirname, '..', '..')
const PICTURE = join(ROOT, 'docs', 'newcomer.svg')
const LOOK_EVERY_MS = 500
const WITHIN_S = 60

const home = await mkdtemp(join(tmpdir(), 'hyperkube-newcomer-'))
const env = { ...process.env, HOME: home, KUBECONFIG: '', NPM_CONFIG_LOGLEVEL: 'silent', TERM: 'xterm', NO_COLOR: '' }
/** The lines of the picture, with a prompt before each command. */
const shown: string[] = []
let failures = 0

function show(typed: string, output: string): void {
  const lines = [`\u001B[32m$\u001B[39m \u001B[1m${typed}\u001B[22m`, ...output.split('\n'), '']
  shown.push(...lines.map((line) => line.replaceAll(home, '~')))
}

function judge(what: string, isRight: boolean, output: string): void {
  process.stdout.write(`${isRight ? 'ok ' : 'NOT'} ${what}\n`)
  if (isRight) return
  failures += 1
  process.stdout.write(`    ${output.replaceAll('\n', '\n    ')}\n`)
}

interface Terminal {
  readonly child: ChildProcessByStdio<Writable, Readable, null>
  output: string
}

/** The cluster in a terminal of its own. Resolves when it says how it is stopped. */
async function start(typed: string): Promise<Terminal> {
  const command = `stty cols 130; exec ${typed}`
  const child = spawn('script', ['-qfec', command, '/dev/null'], { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'inherit'] })
  const terminal: Terminal = { child, output: '' }
  const ready = Promise.withResolvers<void>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    terminal.output += text.replaceAll('\r', '')
    if (/Stop:.*\n/.test(terminal.output)) ready.resolve()
  })
  child.once('exit', () => ready.reject(new Error(`The cluster did not start: ${terminal.output}`)))
  await ready.promise
  const readyMs = /Ready in (\d+) ms/.exec(terminal.output)?.[1]
  judge(`${typed}: ready in ${readyMs} ms`, readyMs !== undefined, terminal.output)
  return terminal
}

async function interrupt({ child }: Terminal): Promise<void> {
  const gone = once(child, 'exit')
  child.stdin.write('\u0003')
  await gone
}

function type(command: string): { status: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: home, env, encoding: 'utf8' })
  return { status, text: `${stdout}${stderr}`.trim() }
}

/** Types it until what it says is what is waited for. */
async function take({ typed, sees, isShown }: Step): Promise<void> {
  const deadlineMs = realClock.elapsed() + WITHIN_S * 2000
  let { status, text } = type(typed)
  while (!(status === 0 && sees.test(text)) && realClock.elapsed() < deadlineMs) {
    await sleep(realClock, LOOK_EVERY_MS)
    ;({ status, text } = type(typed))
  }
  judge(typed, status === 0 && sees.test(text), `expected ${sees}, got ${status} ${text}`)
  if (isShown === true) show(typed, text)
}

/** Chooses another port if a running cluster uses the default one. */
async function portFlag(): Promise<string> {
  const probe = createServer().listen(6443, '127.0.0.1')
  const isFree = await Promise.race([once(probe, 'listening').then(() => true), once(probe, 'error').then(() => false)])
  probe.close()
  return isFree ? '' : ' --secure-port 0'
}

/** All that is there, but for what is always on the move. */
const INVENTORY =
  'kubectl get deployments,replicasets,statefulsets,daemonsets,jobs,cronjobs,hpa,pvc,pv,pods,services,nodes -A -o name | grep -v /tick- | sort'

async function main(): Promise<void> {
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(home, name), text)
  await mkdir(join(home, '.kube'))
  const typed = `npm start -- --runtime simulated --nodes 3 --data-dir ${home}/shop${await portFlag()}`
  const first = await start(typed)
  show(typed, first.output.replace(/^set-up: .*\n/gm, '').trim())
  let terminal: Terminal | undefined = first
  try {
    for (const step of STORY) await take(step)
    const before = type(INVENTORY).text
    await interrupt(terminal)
    terminal = undefined
    terminal = await start(typed)
    const after = type(INVENTORY).text
    judge('everything is there again', before === after, `${before}\n    is now\n${after}`)
    await take({ typed: 'kubectl rollout status statefulset/db', sees: /complete/ })
  } finally {
    if (terminal !== undefined) await interrupt(terminal)
    await rm(home, { recursive: true, force: true })
  }
  if (options.picture === true && failures === 0) await writeFile(PICTURE, terminalPicture(shown))
  process.stdout.write(failures === 0 ? 'all steps passed\n' : `${failures} steps failed\n`)
  process.exitCode = failures === 0 ? 0 : 1
}

await main()
