import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import type { ExecEntry } from '#model/kubeconfig/entries.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'

import { type ConfigSources, inClusterConfig, programConfig, userConfig } from './config.ts'
import { createExecPlugin, type RunPlugin } from './exec-plugin.ts'

function sources(files: Readonly<Record<string, string>>, env: ConfigSources['env'] = {}): ConfigSources {
  const missing = (path: string): Error => Object.assign(new Error(`no ${path}`), { code: 'ENOENT' })
  return {
    env: { HOME: '/home/me', ...env },
    cwd: '/work',
    readFile: (path) => (files[path] === undefined ? Promise.reject(missing(path)) : Promise.resolve(files[path])),
  }
}

const entry = (name: string, server: string, user: string = '{token: t}'): string => `
clusters: [{name: ${name}, cluster: {server: "${server}"}}]
users: [{name: ${name}, user: ${user}}]
contexts: [{name: ${name}, context: {cluster: ${name}, user: ${name}, namespace: in-${name}}}]
current-context: ${name}
`

describe('userConfig', () => {
  const files = {
    '/a': entry('one', 'https://one'),
    '/b': entry('one', 'https://other'),
    '/c': entry('two', 'https://two'),
    '/home/me/.kube/config': entry('home', 'https://home'),
    '/broken': 'clusters: {',
  }

  it('reads ~/.kube/config when nothing is said', async () => {
    const { cluster, user, namespace } = await userConfig('', {}, sources(files))
    assert.deepEqual([cluster.server, user.token, namespace], ['https://home', 't', 'in-home'])
  })

  it('merges the files of KUBECONFIG, of which the first has its way and missing ones do not matter', async () => {
    const env = { KUBECONFIG: '/nowhere:/a:/b:/a:/c' }
    assert.equal((await userConfig('', {}, sources(files, env))).cluster.server, 'https://one')
    const chosen = await userConfig('', { context: 'two' }, sources(files, env))
    assert.deepEqual([chosen.cluster.server, chosen.namespace], ['https://two', 'in-two'])
  })

  it('puts what the command line says in place of parts of the context', async () => {
    const overrides = { cluster: 'two', namespace: 'here' }
    const { cluster, namespace } = await userConfig('', overrides, sources(files, { KUBECONFIG: '/a:/c' }))
    assert.deepEqual([cluster.server, namespace], ['https://two', 'here'])
  })

  it('takes relative paths from the file they stand in', async () => {
    const user = '{client-certificate: c.crt, client-key: /k.key, tokenFile: ../t, exec: {command: ./bin/x}}'
    const text = entry('x', 'https://x', user.replace('exec: {command: ./bin/x}', 'username: ""'))
    const there = { '/work/sub/config': text, '/work/sub/c.crt': '', '/k.key': '', '/work/t': 't' }
    const read = sources({ ...there, 'sub/config': text })
    const config = await userConfig('sub/config', {}, read)
    assert.deepEqual(
      [config.user['client-certificate'], config.user['client-key'], config.user.tokenFile],
      ['/work/sub/c.crt', '/k.key', '/work/t'],
    )
  })

  const refusals: readonly [what: string, explicit: string, overrides: object, message: string][] = [
    ['a file that is not there', '/gone', {}, 'stat /gone: no such file or directory'],
    ['a context that is not there', '/a', { context: 'x' }, 'context "x" does not exist'],
    ['a cluster that is not there', '/a', { cluster: 'x' }, 'cluster "x" does not exist'],
    ['a user that is not there', '/a', { user: 'x' }, 'auth info "x" does not exist'],
  ]
  for (const [what, explicit, overrides, message] of refusals) {
    it(`refuses ${what} in upstream's words`, async () => {
      await assert.rejects(userConfig(explicit, overrides, sources(files)), { name: 'ConfigError', message })
    })
  }

  it('names the file that cannot be read', async () => {
    await assert.rejects(
      userConfig('/broken', {}, sources(files)),
      /^ConfigError: error loading config file "\/broken": /,
    )
  })

  const users: readonly [user: string, message: string][] = [
    [
      '{client-certificate-data: YQ==}',
      'client-key-data or client-key must be specified for x to use the clientCert authentication method.',
    ],
    [
      '{token: a, username: b}',
      'more than one authentication method found for x; found [token basicAuth], only one is allowed',
    ],
    ['{as-groups: [a]}', 'requesting uid, groups or user-extra for x without impersonating a user'],
    [
      '{client-certificate: /no, client-key-data: YQ==}',
      'unable to read client-cert /no for x due to open /no: no such file or directory',
    ],
    [
      '{exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}',
      'interactiveMode must be specified for x to use exec authentication plugin',
    ],
    [
      '{exec: {interactiveMode: Maybe, command: x, apiVersion: client.authentication.k8s.io/v1beta1}}',
      'invalid interactiveMode for x: "Maybe"',
    ],
    [
      '{exec: {}}',
      '[command must be specified for x to use exec authentication plugin, apiVersion must be specified for x to use exec authentication plugin]',
    ],
  ]
  for (const [user, message] of users) {
    it(`refuses the user ${user}`, async () => {
      const read = sources({ '/x': entry('x', 'https://x', user) })
      await assert.rejects(userConfig('/x', {}, read), { message: `invalid configuration: ${message}` })
    })
  }
})

describe('programConfig', () => {
  it('takes the server of --master, and who we are from the kubeconfig', async () => {
    const text = entry('one', 'https://one').replace('"https://one"', '"https://one", tls-server-name: n')
    const config = await programConfig({ kubeconfig: '/a', master: 'https://master' }, sources({ '/a': text }))
    assert.deepEqual(config.cluster, { server: 'https://master' })
    assert.equal(config.user.token, 't')
  })

  it('says that nothing was configured', async () => {
    const warnings: string[] = []
    const around = { ...sources({}), warn: (text: string) => warnings.push(text) }
    await assert.rejects(programConfig({ kubeconfig: '', master: '' }, around), {
      message:
        'invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable',
    })
    assert.equal(warnings.length, 2)
  })
})

describe('inClusterConfig', () => {
  const SECRETS = '/var/run/secrets/kubernetes.io/serviceaccount'

  it('is what a pod is given', async () => {
    const files = { [`${SECRETS}/token`]: 't', [`${SECRETS}/ca.crt`]: 'pem', [`${SECRETS}/namespace`]: 'n\n' }
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    assert.deepEqual(await inClusterConfig(sources(files, env)), {
      cluster: { server: 'https://[fd00::1]:443', 'certificate-authority': `${SECRETS}/ca.crt` },
      user: { tokenFile: `${SECRETS}/token` },
      namespace: 'n',
    })
  })

  it("is not there outside of a pod, in upstream's words", async () => {
    await assert.rejects(inClusterConfig(sources({})), {
      message:
        'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    })
  })
})

describe('a credential plugin', () => {
  const exec: ExecEntry = {
    command: 'plugin',
    args: ['a'],
    env: [{ name: 'X', value: 'y' }],
    apiVersion: 'client.authentication.k8s.io/v1',
    interactiveMode: 'IfAvailable',
    installHint: 'get it somewhere',
  }
  const config = (more: ExecEntry = {}): ClientConfig => ({
    cluster: { server: 'https://s', extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { a: 1 } }] },
    user: { exec: { ...exec, ...more } },
    namespace: '',
  })
  const answer = (status: object, version: string = 'v1'): string =>
    JSON.stringify({ apiVersion: `client.authentication.k8s.io/${version}`, kind: 'ExecCredential', status })
  const printing =
    (output: string): RunPlugin =>
    () =>
      Promise.resolve({ code: 0, output })

  it('is told what it is asked for, and asked again when its answer expires or is refused', async () => {
    const clock = createVirtualClock()
    const asked: unknown[] = []
    const run: RunPlugin = (command, args, { env }) => {
      asked.push([command, args, env['X'], env['KUBERNETES_EXEC_INFO']])
      const expirationTimestamp = new Date(clock.now() + 60_000).toISOString()
      return Promise.resolve({ code: 0, output: answer({ token: `t${asked.length}`, expirationTimestamp }) })
    }
    const options = { clock, env: {}, run, isTerminal: () => false }
    const plugin = createExecPlugin(config({ provideClusterInfo: true }), options)!
    const first = await plugin.credentials()
    assert.equal(await plugin.credentials(), first)
    const info =
      '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://s","config":{"a":1}},"interactive":false}}\n'
    assert.deepEqual(asked, [['plugin', ['a'], 'y', info]])
    await clock.advance(60_000)
    const second = await plugin.credentials()
    assert.deepEqual(second, { token: 't2' })
    await plugin.refused(first)
    assert.equal(asked.length, 2)
    await plugin.refused(second)
    assert.deepEqual(await plugin.credentials(), { token: 't3' })
  })

  const failures: readonly [what: string, run: RunPlugin, message: RegExp][] = [
    ['fails', () => Promise.resolve({ code: 3, output: '' }), /^exec: executable plugin failed with exit code 3$/],
    [
      'is not installed',
      () => Promise.reject(Object.assign(new Error('spawn'), { code: 'ENOENT' })),
      /^exec: executable plugin not found\n\nIt looks like [^]*#client-go-credential-plugins\n\nget it somewhere$/,
    ],
    [
      'prints no object',
      printing('hello'),
      /^decoding stdout: couldn't get version\/kind; json parse error: json: cannot unmarshal string into Go value of type struct \{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" \}$/,
    ],
    [
      'prints broken JSON',
      printing('{'),
      /^decoding stdout: couldn't get version\/kind; json parse error: unexpected end of JSON input$/,
    ],
    ['prints nothing', printing(''), /, plugin returned version client\.authentication\.k8s\.io\/__internal$/],
    [
      'prints another kind',
      printing('{"apiVersion":"v1","kind":"Pod"}'),
      /^decoding stdout: no kind "Pod" is registered for version "v1" in scheme "pkg\/runtime\/scheme\.go:111"$/,
    ],
    [
      'prints a token of the wrong type',
      printing(answer({ token: 5 })),
      /^decoding stdout: json: cannot unmarshal number into Go struct field ExecCredentialStatus\.status\.token of type string$/,
    ],
    [
      'speaks another version',
      printing(answer({ token: 't' }, 'v1beta1')),
      /^exec plugin is configured to use API version client\.authentication\.k8s\.io\/v1, plugin returned version client\.authentication\.k8s\.io\/v1beta1$/,
    ],
    [
      'has no status',
      printing('{"apiVersion":"client.authentication.k8s.io/v1"}'),
      /^exec plugin didn't return a status field$/,
    ],
    ['has nothing to say', printing(answer({})), /^exec plugin didn't return a token or cert\/key pair$/],
    [
      'has half a certificate',
      printing(answer({ clientKeyData: 'k' })),
      /^exec plugin returned only certificate or key, not both$/,
    ],
  ]
  for (const [what, run, message] of failures) {
    it(`that ${what} is told of in upstream's words`, async () => {
      const plugin = createExecPlugin(config(), { clock: createVirtualClock(), env: {}, run })!
      await assert.rejects(plugin.credentials(), { name: 'ConfigError', message })
    })
  }

  it('may print YAML', async () => {
    const yaml = 'apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {token: x}\n'
    const options = { clock: createVirtualClock(), env: {}, run: printing(yaml) }
    assert.deepEqual(await createExecPlugin(config(), options)!.credentials(), { token: 'x' })
  })

  interface Interaction {
    readonly mode: string
    readonly isTerminal: boolean
    readonly stdinUse?: string
  }

  /** Whether the plugin gets standard input, as its context and its instructions say. */
  async function isInteractive({ mode, isTerminal, stdinUse }: Interaction): Promise<boolean> {
    const answers: unknown[] = []
    const run: RunPlugin = (_command, _args, context) => {
      const info = JSON.parse(context.env['KUBERNETES_EXEC_INFO'] ?? '') as { spec: { interactive: boolean } }
      answers.push(context.isInteractive, info.spec.interactive)
      return Promise.resolve({ code: 0, output: answer({ token: 't' }) })
    }
    const options = { clock: createVirtualClock(), env: {}, run, isTerminal: () => isTerminal, stdinUse }
    await createExecPlugin(config({ interactiveMode: mode }), options)!.credentials()
    assert.equal(answers[0], answers[1])
    return answers[0] === true
  }

  it('gets the terminal as its interactive mode asks', async () => {
    assert.equal(await isInteractive({ mode: 'Always', isTerminal: true }), true)
    assert.equal(await isInteractive({ mode: 'IfAvailable', isTerminal: true }), true)
    assert.equal(await isInteractive({ mode: 'IfAvailable', isTerminal: true, stdinUse: 'x' }), false)
    assert.equal(await isInteractive({ mode: 'IfAvailable', isTerminal: false }), false)
    assert.equal(await isInteractive({ mode: 'Never', isTerminal: true }), false)
  })

  it('fails without the terminal that it always needs', async () => {
    const failure = 'exec plugin cannot support interactive mode: standard input is'
    await assert.rejects(isInteractive({ mode: 'Always', isTerminal: false }), { message: `${failure} not a terminal` })
    await assert.rejects(isInteractive({ mode: 'Always', isTerminal: true, stdinUse: 'used by x' }), {
      message: `${failure} unavailable: used by x`,
    })
  })

  it('of an unknown interface is refused', () => {
    assert.throws(() => createExecPlugin(config({ apiVersion: 'x/v1' }), { clock: createVirtualClock(), env: {} }), {
      message: 'exec plugin: invalid apiVersion "x/v1"',
    })
  })
})
