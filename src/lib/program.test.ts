import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Collector, type Outcome, runProgram } from '#kits/cmd/run-program.ts'

import { flag } from './flags/flags.ts'
import { int, string } from './flags/kinds.ts'
import { LOG_FLAGS } from './log/flags.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError, StopSignal } from './program.ts'

function run(program: Program, args: readonly string[], changes: Partial<ProgramContext> = {}): Promise<Outcome> {
  const { signal } = new AbortController()
  return runProgram((context) => program.run(context, signal), { path: [program.name], args, ...changes })
}

const server = defineProgram({
  name: 'server',
  aliases: ['srv'],
  long: 'The server serves.',
  version: { text: 'Server v1', raw: 'raw{1}', number: 'v1.2.3+own' },
  flags: {
    generic: {
      port: flag(int, 80, 'The port', { field: 'serving.port' }),
      config: flag(string, '', 'The config file'),
      old: flag(string, '', 'Old', { deprecated: 'do not' }),
    },
    logs: LOG_FLAGS,
  },
  config: { flag: 'config', parse: (text) => JSON.parse(text) as unknown, strict: true },
  async run({ flags, log, stdout, changed, version }) {
    const port: number = flags.port
    log.v(2)?.info('Serving', { port })
    stdout.write(`port ${port} ${[...changed].join()}${version === undefined ? '' : ` ${version}`}\n`)
    return await Promise.resolve(port === 0 ? 7 : 0)
  },
})

describe('a command-line program', () => {
  it('parses its flags and returns its exit code', async () => {
    assert.deepEqual(await run(server, ['--port=0']), { code: 7, out: 'port 0 port\n', err: '' })
  })

  it('prints its help in groups, including help and version', async () => {
    const { code, out } = await run(server, ['--port=1', '-h'])
    assert.equal(code, 0)
    assert.match(
      out,
      /^The server serves\.\n\nUsage:\n {2}server \[flags\]\n\nAliases:\n {2}server, srv\n\nGeneric flags:\n\n/,
    )
    assert.match(out, /\nLogs flags:\n\n[^]*-v, --v Level +number for the log level verbosity\n/)
    assert.match(
      out,
      /\nGlobal flags:\n\n {2}-h, --help +help for server\n {6}--version version\[=true\] +--version, --v/,
    )
  })

  it('wraps its help to the width of the terminal', async () => {
    const stdout = Object.assign(new Collector(), { columns: 60 })
    await run(server, ['--help'], { stdout })
    assert.match(stdout.text, /\n {6}--port int\n {16}The port \(default 80\)\n/)
  })

  it('prints a short help if it has one, and everything with --help-all', async () => {
    const large = defineProgram({
      name: 'large',
      long: 'A program with many options.',
      flags: { generic: { gates: flag(string, '', 'Options are:\nA\nB'), rare: flag(string, '', 'Rarely set') } },
      shortHelp: { brief: { gates: 'Gates.' }, omit: ['rare'] },
      run: async () => 0,
    })
    const { out: short } = await run(large, ['--help'])
    assert.match(short, /--gates string {3}Gates\.\n/)
    assert.doesNotMatch(short, /--rare|Options are/)
    assert.match(short, /\nUse "large --help-all" for all flags and their options\.\n$/)
    const { out: whole } = await run(large, ['--help-all'])
    assert.match(whole, /--gates string {3}Options are:\n +A\n +B\n +--rare string {4}Rarely set\n/)
    assert.match((await run(server, ['--help-all'])).err, /unknown flag: --help-all/)
  })

  it('prints its version, formatted or raw', async () => {
    assert.equal((await run(server, ['--version'])).out, 'Server v1\n')
    assert.equal((await run(server, ['--version=raw'])).out, 'raw{1}\n')
    assert.equal((await run(server, ['--version=false'])).out, 'port 80 version\n')
    assert.equal((await run(server, ['--version=v1.2.3-mine'])).out, 'port 80 version v1.2.3-mine\n')
    assert.match(
      (await run(server, ['--version=v1.2.4'])).err,
      /: version "v1\.2\.4" must match major\/minor\/patch of default version "v1\.2\.3\+own"/,
    )
    assert.match((await run(server, ['--version=vx'])).err, /: could not parse "vx" as version/)
    assert.match((await run(server, ['--version=x'])).err, /invalid argument "x" for "--version" flag/)
  })

  it('reports invalid flags and how to get help', async () => {
    const err = "Error: unknown flag: --nope\nRun 'server --help' for usage.\n"
    assert.deepEqual(await run(server, ['--help', '--nope']), { code: 1, out: '', err })
    assert.match((await run(server, ['extra'])).err, /^Error: unknown command "extra" for "server"\n/)
  })

  it('warns about deprecated flags and continues', async () => {
    const { code, err } = await run(server, ['--old=x'])
    assert.deepEqual([code, err], [0, 'Flag --old has been deprecated, do not\n'])
  })

  it('logs to stderr as configured, and flushes before it exits', async () => {
    assert.equal((await run(server, ['-v=1'])).err, '')
    assert.match((await run(server, ['-v2'])).err, /^I[^]*Serving[^]*port=80\n$/)
    const { err } = await run(server, ['-v=2', '--logging-format=json'])
    assert.equal((JSON.parse(err) as { msg: string }).msg, 'Serving')
  })

  it('merges its config file below the flags', async () => {
    const readFile = (path: string): Promise<string> =>
      Promise.resolve(path === 'c' ? '{"serving":{"port":1}}' : '{"x":1}')
    assert.equal((await run(server, ['--config=c'], { readFile })).out, 'port 1 config\n')
    assert.equal((await run(server, ['--config=c', '--port=2'], { readFile })).out, 'port 2 config,port\n')
    assert.deepEqual(await run(server, ['--config=d'], { readFile }), {
      code: 1,
      out: '',
      err: 'Error: Cannot read config file "d": strict decoding error: unknown field "x"\n',
    })
    assert.equal((await run(server, ['--config=e'])).err, 'Error: Cannot read config file "e": no such file: e\n')
  })
})

describe('a command-line program that fails', () => {
  const failing = (fault: Error): Program =>
    defineProgram({ name: 'p', long: '', flags: {}, run: () => Promise.reject(fault) })

  it('prints expected errors without a stack', async () => {
    const error = new ProgramError('Port 80 is taken; choose another with --port')
    assert.deepEqual(await run(failing(error), []), { code: 1, out: '', err: `Error: ${error.message}\n` })
  })

  it('rethrows unexpected errors', async () => {
    await assert.rejects(run(failing(new TypeError('boom')), []), TypeError)
  })

  it('names the required flags that are missing', async () => {
    const flags = { generic: { token: flag(string, '', 'Token', { required: true }) } }
    const needy = defineProgram({ name: 'p', long: '', flags, run: () => Promise.resolve(0) })
    assert.equal((await run(needy, ['-h'])).code, 0)
    assert.match((await run(needy, [])).err, /^Error: required flag\(s\) "token" not set\n/)
  })
})

describe('a command-line program that is stopped', () => {
  async function stopped(wrap: (reason: Error) => Error): Promise<number> {
    const waiting = defineProgram({
      name: 'p',
      long: '',
      flags: {},
      run: (_, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(wrap(signal.reason as Error)))),
    })
    const controller = new AbortController()
    setImmediate(() => controller.abort(new StopSignal('SIGTERM', 15)))
    return (await runProgram((context) => waiting.run(context, controller.signal), { args: [] })).code
  }

  it('exits with 128 plus the number of the signal', async () => {
    assert.equal(await stopped((reason) => reason), 143)
    assert.equal(await stopped((cause) => new Error('The operation was aborted', { cause })), 143)
  })
})

describe('commands of a program', () => {
  const leaf = (name: string): Program => ({
    name,
    run({ args, path, stdout }) {
      stdout.write(`${path.join('>')}: ${args.join(' ')}\n`)
      return Promise.resolve(3)
    },
  })
  const loaded: string[] = []
  const command = (name: string, aliases: string[] = []) => ({
    name,
    aliases,
    short: `Does ${name}`,
    load: () => {
      loaded.push(name)
      return Promise.resolve(leaf(name))
    },
  })
  const commands = [{ title: 'Commands', commands: [command('save', ['store']), command('restore')] }]
  const tree = defineProgram({ name: 'tree', long: 'Tree', flags: {}, commands, run: () => Promise.resolve(9) })

  it('get all arguments after their name unchanged', async () => {
    assert.deepEqual(await run(tree, ['save', '--help', '-x', '--', 'y']), {
      code: 3,
      out: 'tree>save: --help -x -- y\n',
      err: '',
    })
  })

  it('can be called by alias', async () => assert.equal((await run(tree, ['store'])).out, 'tree>save: \n'))

  it('are loaded only when they are selected', async () => {
    loaded.length = 0
    await run(tree, ['--help'])
    await run(tree, ['restore'])
    assert.deepEqual(loaded, ['restore'])
  })

  it('are listed in help', async () => {
    const { out } = await run(tree, ['help'])
    assert.match(
      out,
      /Usage:\n {2}tree \[command\]\n\nCommands:\n {2}save +Does save \(also: store\)\n {2}restore +Does restore\n/,
    )
    assert.match(out, /\nUse "tree \[command\] --help" for more information about a command\.\n$/)
  })

  it('print their help with "help NAME"', async () => {
    assert.equal((await run(tree, ['help', 'save'])).out, 'tree>save: --help\n')
  })

  it('are optional: without one the program itself runs', async () => assert.equal((await run(tree, [])).code, 9))

  it('suggest the nearest name for an unknown one', async () => {
    assert.deepEqual(await run(tree, ['sav']), {
      code: 1,
      out: '',
      err: 'Error: unknown command "sav" for "tree"\n\nDid you mean this?\n\tsave\n\nRun \'tree --help\' for usage.\n',
    })
    assert.equal(
      (await run(tree, ['elephant'])).err,
      'Error: unknown command "elephant" for "tree"\nRun \'tree --help\' for usage.\n',
    )
  })
})
