/**
 * Tests that `down`, `status` and `reset` use the lock of the running cluster. Cases: a renamed checkout, SIGKILL at
 * any step, and another process that reuses the pid.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it, type TestContext } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'
import { takeProcessLock } from '#lib/process/lock.ts'

const ROOT = join(import.meta.dirname, '..', '..')
// No path in here may have the program's name in it.
const dir = mkdtempSync(join(tmpdir(), 'lock-of-a-cluster-'))
const checkout = join(dir, 'k')
mkdirSync(checkout)
for (const part of ['bin', 'scripts', 'src', 'package.json', 'package-lock.json', 'tsconfig.json'])
  cpSync(join(ROOT, part), join(checkout, part), { recursive: true, preserveTimestamps: true })
symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'))
const PROGRAM = join(checkout, 'bin', 'hyperkube')
const WITH_SETUP = join(checkout, 'scripts', 'with-setup.mjs')
const home = { ...process.env, HOME: dir, XDG_CACHE_HOME: join(dir, 'cache') }
// Bundles the sources, which then start in half the time.
const bundling = spawnSync(process.execPath, [WITH_SETUP, 'start', '--help'], { encoding: 'utf8', env: home })
assert.equal(bundling.status, 0, bundling.stderr)
const bundle = readdirSync(checkout).find((name) => name.startsWith('.bundle-')) ?? ''
const env = { ...home, HYPERKUBE_BUNDLE: join(checkout, bundle, 'hyperkube.mjs') }

const running = new Set<ChildProcess>()
after(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
})

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function run(...args: string[]): Ran {
  const { status: code, stdout: out, stderr: err } = spawnSync(PROGRAM, args, { encoding: 'utf8', env })
  return { code, out, err }
}

/** A data directory with a kubeconfig of its own beside it. */
function place(name: string): { data: string; flag: string; kubeconfig: string; up: string[] } {
  const [data, kubeconfig] = [join(dir, name), join(dir, `${name}.kubeconfig`)]
  const flag = `--data-dir=${data}`
  const up = ['--nodes=0', '--controllers=', '--secure-port=0', flag, `--kubeconfig=${kubeconfig}`]
  return { data, flag, kubeconfig, up }
}

interface Started {
  readonly child: ChildProcess
  readonly exit: Promise<unknown>
  /** Resolves when a line of its output matches. */
  printed(line: RegExp): Promise<void>
}

function start(program: string, args: readonly string[], t: TestContext): Started {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exit = once(child, 'exit').then(() => running.delete(child))
  t.after(() => child.kill('SIGKILL'))
  const printed = async (line: RegExp): Promise<void> => {
    while (!line.test(output)) {
      assert.ok(child.exitCode === null, `It ended before it printed ${line}: ${output}`)
      await sleep(realClock, 5)
    }
  }
  return { child, exit, printed }
}

async function startUp(t: TestContext, args: readonly string[]): Promise<Started> {
  const started = start(PROGRAM, ['up', ...args], t)
  await started.printed(/Ready in/)
  return started
}

async function kill({ child, exit }: Started): Promise<void> {
  child.kill('SIGKILL')
  await exit
}

const stateOf = (flag: string): unknown => (JSON.parse(run('status', '-o=json', flag).out) as { state: unknown }).state

function assertNothingLeft({ data, kubeconfig }: ReturnType<typeof place>): void {
  assert.equal(existsSync(data), false, existsSync(data) ? readdirSync(data).join() : '')
  if (existsSync(kubeconfig)) assert.doesNotMatch(readFileSync(kubeconfig, 'utf8'), /name: hyperkube/)
}

describe('lock of a local cluster', () => {
  it('is found by status, down and reset in a checkout with another name', async (t) => {
    const at = place('one')
    const first = await startUp(t, at.up)
    assert.match(run('status', at.flag).out, new RegExp(`^Cluster +running[^]* in process ${first.child.pid},`))
    const again = run('up', ...at.up)
    assert.match(
      again.err,
      new RegExp(`^Error: A cluster is running in \\S+one already \\(process ${first.child.pid}\\)`),
    )
    assert.equal(run('down', at.flag).out, `Stopped the cluster in ${at.data}\n`)
    await first.exit
    assert.equal(first.child.exitCode, 0)
    assert.equal(stateOf(at.flag), 'stopped')
    const second = await startUp(t, at.up)
    assert.match(run('reset', at.flag).out, /^Deleted the cluster in \S+one\nRemoved context "hyperkube" from/)
    await second.exit
    assert.equal(second.child.exitCode, 0, 'it ended before its files were deleted')
    assertNothingLeft(at)
  })

  it('is found by status, down and reset if npm start created the cluster', async (t) => {
    const at = place('npm')
    const started = start(process.execPath, [WITH_SETUP, 'start', ...at.up], t)
    await started.printed(/Ready in/)
    assert.equal(stateOf(at.flag), 'running')
    assert.equal(run('down', at.flag).out, `Stopped the cluster in ${at.data}\n`)
    await started.exit
    assert.equal(stateOf(at.flag), 'stopped')
  })

  it('exists for a cluster without any files', async (t) => {
    const at = place('no-file')
    const started = await startUp(t, ['--datastore=memory', ...at.up])
    assert.equal(existsSync(join(at.data, 'store.db')), false)
    assert.equal(stateOf(at.flag), 'running')
    assert.match(run('up', '--datastore=memory', ...at.up).err, /^Error: A cluster is running in/)
    assert.equal(run('reset', at.flag).code, 0)
    await started.exit
    assertNothingLeft(at)
  })

  it('never makes a command kill another process that reused the pid of a killed cluster', async (t) => {
    const at = place('recycled')
    await kill(await startUp(t, at.up))
    const file = join(at.data, 'cluster.json')
    const stranger = spawn('sh', ['-c', 'sleep 600; true', 'hyperkube', 'entry.mjs'], { stdio: 'ignore' })
    t.after(() => stranger.kill('SIGKILL'))
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), pid: stranger.pid }))
    assert.equal(stateOf(at.flag), 'stopped')
    assert.equal(run('down', at.flag).out, `No cluster is running in ${at.data}\n`)
    assert.equal(run('reset', at.flag).code, 0)
    assert.equal(stranger.exitCode ?? stranger.signalCode, null)
    assertNothingLeft(at)
  })

  it('is free after SIGKILL at each step of up', async (t) => {
    const at = place('steps')
    for (const step of [/^Certificates/m, /^Nodes/m, /^Kubeconfig/m, /^Ready in|\nReady in/]) {
      const started = start(PROGRAM, ['up', ...at.up], t)
      await started.printed(step)
      await kill(started)
      assert.equal(stateOf(at.flag), 'stopped', `after ${step}`)
    }
    assert.equal(run('up', '--detach', ...at.up).code, 0)
    assert.equal(stateOf(at.flag), 'running')
    assert.equal(run('reset', at.flag).code, 0)
    assertNothingLeft(at)
  })

  it('allows down to stop a cluster that is not ready yet', async (t) => {
    const at = place('early')
    const started = start(PROGRAM, ['up', ...at.up], t)
    await started.printed(/^Certificates/m)
    assert.equal(run('down', at.flag).code, 0)
    await started.exit
    assert.equal(stateOf(at.flag), 'stopped')
  })

  it('allows a second reset to finish a killed one', async (t) => {
    const at = place('resets')
    assert.equal(run('up', '--detach', ...at.up).code, 0)
    for (let waitMs = 200; existsSync(at.data) && waitMs < 4000; waitMs += 100) {
      const started = start(PROGRAM, ['reset', at.flag], t)
      await Promise.race([started.exit, sleep(realClock, waitMs)])
      await kill(started)
    }
    assert.deepEqual(run('reset', at.flag).err, '')
    assertNothingLeft(at)
  })

  it('prevents the start of a partially deleted cluster', () => {
    const at = place('part')
    mkdirSync(at.data)
    writeFileSync(join(at.data, 'reset.unfinished'), '')
    const { code, err } = run('up', ...at.up)
    assert.deepEqual(
      [code, err],
      [1, `Error: The cluster in ${at.data} is only partly deleted; "hyperkube reset" deletes the rest\n`],
    )
    assert.equal(run('reset', at.flag).code, 0)
    assertNothingLeft(at)
  })

  it('prevents reset while another program has the store open', async (t) => {
    const at = place('store')
    await kill(await startUp(t, at.up))
    const other = takeProcessLock(join(at.data, 'store.db.lock'))
    assert.ok('lock' in other)
    const before = readdirSync(at.data)
    const { code, err } = run('reset', at.flag)
    assert.deepEqual(
      [code, err],
      [1, `Error: The store of ${at.data} is in use by process ${process.pid}; stop it first\n`],
    )
    assert.deepEqual(readdirSync(at.data), before)
    other.lock.release()
  })

  it('prevents reset of a running cluster whose lock files were deleted', async (t) => {
    const at = place('unlocked')
    const started = await startUp(t, at.up)
    for (const name of ['cluster.lock', 'store.db.lock']) rmSync(join(at.data, name))
    const { code, err } = run('reset', at.flag)
    assert.deepEqual([code, err], [1, `Error: The store of ${at.data} is in use by another process; stop it first\n`])
    assert.ok(existsSync(join(at.data, 'store.db')) && existsSync(join(at.data, 'pki')))
    await kill(started)
    assert.equal(run('reset', at.flag).code, 0)
    assertNothingLeft(at)
  })

  it('allows down to stop a cluster whose lock file was overwritten', async (t) => {
    const at = place('overwritten')
    const started = await startUp(t, at.up)
    writeFileSync(join(at.data, 'cluster.lock'), Buffer.alloc(4096, 'x'))
    assert.equal(run('down', at.flag).code, 0)
    await started.exit
  })

  const whyNoUser = process.getuid?.() === 0 ? false : 'only root can act as another user'
  it('names the owner of a cluster that another user may not stop', { skip: whyNoUser }, async (t) => {
    const at = place('foreign')
    const started = await startUp(t, at.up)
    chmodSync(dir, 0o755)
    for (const command of ['status', 'down', 'reset']) {
      const { status, stderr } = spawnSync(PROGRAM, [command, at.flag], {
        encoding: 'utf8',
        env: { ...env, XDG_CACHE_HOME: '' },
        uid: 65534,
      })
      assert.equal(status, 1, command)
      assert.match(
        stderr,
        /^Error: E(?:ACCES|PERM): .*; run this command as the user who started the cluster in \S+, or as root\n$/,
      )
    }
    assert.equal(stateOf(at.flag), 'running')
    await kill(started)
  })
})
