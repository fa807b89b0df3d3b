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

describe('userConfig() of the API client', () => {
  const files = {
    '/a': entry('one', 'https://one'),
    '/b': entry('one', 'https://other'),
    '/c': entry('two', 'https://two'),
    '/home/me/.kube/config': entry('home', 'https://home'),
    '/broken': 'clusters: {',
  }

  it('reads ~/.kube/config by default', async () => {
    const { cluster, user, namespace } = await userConfig('', {}, sources(files))
    assert.deepEqual([cluster.server, user.token, namespace], ['https://home', 't', 'in-home'])
  })

  it('merges the files of KUBECONFIG: the first value wins, missing files are ignored', async () => {
    const env = { KUBECONFIG: '/nowhere:/a:/b:/a:/c' }
    assert.equal((await userConfig('', {}, sources(files, env))).cluster.server, 'https://one')
    const chosen = await userConfig('', { context: 'two' }, sources(files, env))
    assert.deepEqual([chosen.cluster.server, chosen.namespace], ['https://two', 'in-two'])
  })

  it('overrides parts of the context with command-line flags', async () => {
    const overrides = { cluster: 'two', namespace: 'here' }
    const { cluster, namespace } = await userConfig('', overrides, sources(files, { KUBECONFIG: '/a:/c' }))
    assert.deepEqual([cluster.server, namespace], ['https://two', 'here'])
  })

  it('resolves relative paths against the directory of their file', async () => {
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
    ['a missing file', '/gone', {}, 'stat /gone: no such file or directory'],
    ['a missing context', '/a', { context: 'x' }, 'context "x" does not exist'],
    ['a missing cluster', '/a', { cluster: 'x' }, 'cluster "x" does not exist'],
    ['a missing user', '/a', { user: 'x' }, 'auth info "x" does not exist'],
  ]
  for (const [what, explicit, overrides, message] of refusals) {
    it(`rejects ${what} with upstream's message`, async () => {
      await assert.rejects(userConfig(explicit, overrides, sources(files)), { name: 'ConfigError', message })
    })
  }

  it('names the file that it failed to read', async () => {
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
    it(`refuses the kubeconfig user ${user}`, async () => {
      const read = sources({ '/x': entry('x', 'https://x', user) })
      await assert.rejects(userConfig('/x', {}, read), { message: `invalid configuration: ${message}` })
    })
  }
})

describe('programConfig() of the API client', () => {
  it('takes the server from --master and the credentials from the kubeconfig', async () => {
    const text = entry('one', 'https://one').replace('"https://one"', '"https://one", tls-server-name: n')
    const config = await programConfig({ kubeconfig: '/a', master: 'https://master' }, sources({ '/a': text }))
    assert.deepEqual(config.cluster, { server: 'https://master' })
    assert.equal(config.user.token, 't')
  })

  it('fails when neither a flag nor a pod provides a configuration', async () => {
    const warnings: string[] = []
    const around = { ...sources({}), warn: (text: string) => warnings.push(text) }
    await assert.rejects(programConfig({ kubeconfig: '', master: '' }, around), {
      message:
        'invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable',
    })
    assert.equal(warnings.length, 2)
  })
})

describe('inClusterConfig() of the API client', () => {
  const SECRETS = '/var/run/secrets/kubernetes.io/serviceaccount'

  it('reads the service account files and variables of a pod', async () => {
    const files = { [`${SECRETS}/token`]: 't', [`${SECRETS}/ca.crt`]: 'pem', [`${SECRETS}/namespace`]: 'n\n' }
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    assert.deepEqual(await inClusterConfig(sources(files, env)), {
      cluster: { server: 'https://[fd00::1]:443', 'certificate-authority': `${SECRETS}/ca.crt` },
      user: { tokenFile: `${SECRETS}/token` },
      namespace: 'n',
    })
  })

  it("fails outside of a pod with upstream's message", async () => {
    await assert.rejects(inClusterConfig(sources({})), {
      message:
        'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    })
  })
})

describe('credential plugin', () => {
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

  it('gets cluster and interactivity in its environment, and runs again when a credential expires or is refused', async () => {
    const clock = createVirtualClock()
    const requests: unknown[] = []
    const run: RunPlugin = (command, args, { env }) => {
      requests.push([command, args, env['X'], env['KUBERNETES_EXEC_INFO']])
      const expirationTimestamp = new Date(clock.now() + 60_000).toISOString()
      return Promise.resolve({ code: 0, output: answer({ token: `t${requests.length}`, expirationTimestamp }) })
    }
    const options = { clock, env: {}, run, isTerminal: () => false }
    const plugin = createExecPlugin(config({ provideClusterInfo: true }), options)!
    const first = await plugin.credentials()
    assert.equal(await plugin.credentials(), first)
    const info =
      '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"https://s","config":{"a":1}},"interactive":false}}\n'
    assert.deepEqual(requests, [['plugin', ['a'], 'y', info]])
    await clock.advance(60_000)
    const second = await plugin.credentials()
    assert.deepEqual(second, { token: 't2' })
    await plugin.refused(first)
    assert.equal(requests.length, 2)
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
      'prints something other than an object',
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
      'prints another version',
      printing(answer({ token: 't' }, 'v1beta1')),
      /^exec plugin is configured to use API version client\.authentication\.k8s\.io\/v1, plugin returned version client\.authentication\.k8s\.io\/v1beta1$/,
    ],
    [
      'prints no status',
      printing('{"apiVersion":"client.authentication.k8s.io/v1"}'),
      /^exec plugin didn't return a status field$/,
    ],
    ['prints an empty status', printing(answer({})), /^exec plugin didn't return a token or cert\/key pair$/],
    [
      'prints a certificate without its key',
      printing(answer({ clientKeyData: 'k' })),
      /^exec plugin returned only certificate or key, not both$/,
    ],
  ]
  for (const [what, run, message] of failures) {
    it(`fails with upstream's message if it ${what}`, async () => {
      const plugin = createExecPlugin(config(), { clock: createVirtualClock(), env: {}, run })!
      await assert.rejects(plugin.credentials(), { name: 'ConfigError', message })
    })
  }

  it('may print its credential as YAML', async () => {
    const yaml = 'apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {token: x}\n'
    const options = { clock: createVirtualClock(), env: {}, run: printing(yaml) }
    assert.deepEqual(await createExecPlugin(config(), options)!.credentials(), { token: 'x' })
  })

  interface Interaction {
    readonly mode: string
    readonly isTerminal: boolean
    readonly stdinUse?: string
  }

  /** Returns whether the plugin gets standard input in this mode. */
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

  it('gets the terminal according to interactiveMode', async () => {
    assert.equal(await isInteractive({ mode: 'Always', isTerminal: true }), true)
    assert.equal(await isInteractive({ mode: 'IfAvailable', isTerminal: true }), true)
    assert.equal(await isInteractive({ mode: 'IfAvailable', isTerminal: true, stdinUse: 'x' }), false)
    assert.equal(await isInteractive({ mode: 'IfAvailable', isTerminal: false }), false)
    assert.equal(await isInteractive({ mode: 'Never', isTerminal: true }), false)
  })

  it('fails without a terminal if interactiveMode is Always', async () => {
    const failure = 'exec plugin cannot support interactive mode: standard input is'
    await assert.rejects(isInteractive({ mode: 'Always', isTerminal: false }), { message: `${failure} not a terminal` })
    await assert.rejects(isInteractive({ mode: 'Always', isTerminal: true, stdinUse: 'used by x' }), {
      message: `${failure} unavailable: used by x`,
    })
  })

  it('is rejected with an unknown API version', () => {
    assert.throws(() => createExecPlugin(config({ apiVersion: 'x/v1' }), { clock: createVirtualClock(), env: {} }), {
      message: 'exec plugin: invalid apiVersion "x/v1"',
    })
  })
})
