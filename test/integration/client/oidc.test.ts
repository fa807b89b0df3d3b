/** Tests how the client renews OIDC tokens, with a test identity provider and a real API server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { userConfig } from '#client/connection/config.ts'
import { type Connection, openConnection } from '#client/connection/connection.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml/yaml.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const NOW = Date.UTC(2026, 0, 1)
const clock: Clock = { ...realClock, now: () => NOW }
const tokenUntil = (ms: number): string =>
  ['{"alg":"none"}', JSON.stringify({ exp: ms / 1000 }), 'x']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.')
const OLD = tokenUntil(NOW + 5000)
const NEW = tokenUntil(NOW + 3_600_000)

let plane: ControlPlane
let provider: Server
let issuer: string
/** The request bodies that the provider received, and its responses. */
let asked: string[]
let answer: (body: string, request: IncomingMessage) => { readonly status: number; readonly body: unknown }

before(async () => {
  plane = await startControlPlane({ files: new Map([['tokens.csv', `${NEW},somebody,1,"system:masters"\n`]]) })
  provider = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const isDiscovery = request.url === '/id/.well-known/openid-configuration'
      if (!isDiscovery) asked.push(body)
      const said = isDiscovery ? { status: 200, body: { token_endpoint: `${issuer}/token` } } : answer(body, request)
      response.writeHead(said.status).end(JSON.stringify(said.body))
    })
  }).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/id`
})

after(async () => {
  provider.close()
  provider.closeAllConnections()
  await plane.stop()
})

beforeEach(() => {
  asked = []
  answer = () => ({ status: 200, body: { id_token: NEW, refresh_token: 'second' } })
})

const kubeconfig = (config: Record<string, string>): string =>
  stringifyYaml({
    clusters: [
      {
        name: 'c',
        cluster: { server: plane.url, 'certificate-authority-data': Buffer.from(plane.ca).toString('base64') },
      },
    ],
    users: [
      { name: 'other', user: { token: 'x' } },
      { name: 'u', user: { 'auth-provider': { name: 'oidc', config } } },
    ],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })

async function open(
  config: Record<string, string>,
): Promise<{ client: ApiClient; connection: Connection; files: Map<string, string> }> {
  const files = new Map([['/k', kubeconfig(config)]])
  const readFile = async (path: string): Promise<string> => files.get(path) ?? ''
  const chosen = await userConfig('/k', {}, { env: {}, cwd: '/', readFile })
  const writeFile = async (path: string, text: string): Promise<void> => void files.set(path, text)
  const connection = await openConnection(chosen, { clock, readFile, writeFile })
  return { client: new ApiClient({ ...connection, clock, userAgent: 'tester/v1' }), connection, files }
}

describe('oidc auth provider of a kubeconfig', () => {
  const usual = (): Record<string, string> => ({
    'idp-issuer-url': issuer,
    'client-id': 'me',
    'client-secret': 's',
    'refresh-token': 'first',
  })

  it('renews an expiring token once, and saves the new tokens', async () => {
    const { client, connection, files } = await open({ ...usual(), 'id-token': OLD })
    await Promise.all([1, 2, 3].map(() => client.list(ConfigMaps, { namespace: 'default' })))
    assert.deepEqual(asked, ['grant_type=refresh_token&refresh_token=first'])
    const { users } = parseYaml(files.get('/k') ?? '') as {
      users: { name: string; user: { 'auth-provider'?: { config: unknown } } }[]
    }
    assert.deepEqual(users[0], { name: 'other', user: { token: 'x' } })
    assert.deepEqual(users[1]?.user['auth-provider']?.config, {
      ...usual(),
      'refresh-token': 'second',
      'id-token': NEW,
    })
    connection.close()
  })

  it('sends no request while its token is valid', async () => {
    const { client, connection } = await open({ ...usual(), 'id-token': NEW })
    await client.list(ConfigMaps, { namespace: 'default' })
    assert.deepEqual(asked, [])
    connection.close()
  })

  it('sends client credentials in the body to providers that require that', async () => {
    answer = (body) =>
      body.includes('client_id') ? { status: 200, body: { id_token: NEW } } : { status: 401, body: {} }
    const { client, connection, files } = await open(usual())
    await client.list(ConfigMaps, { namespace: 'default' })
    assert.equal(asked[1], 'grant_type=refresh_token&refresh_token=first&client_id=me&client_secret=s')
    assert.match(files.get('/k') ?? '', /refresh-token: first/)
    connection.close()
  })

  const refusals: readonly [more: Record<string, string>, reply: unknown, message: string][] = [
    [{ 'refresh-token': '' }, {}, 'No valid id-token, and cannot refresh without refresh-token'],
    [{ 'id-token': 'x' }, {}, 'ID Token is not a valid JWT'],
    [
      {},
      { error: 'invalid_grant', error_description: 'too old' },
      'failed to refresh token: oauth2: "invalid_grant" "too old"',
    ],
    [
      {},
      undefined,
      'token response did not contain an id_token, either the scope "openid" wasn\'t requested upon login, or the provider doesn\'t support id_tokens as part of the refresh response',
    ],
  ]
  for (const [more, reply, message] of refusals) {
    it(`fails with "${message.slice(0, 60)}"`, async () => {
      answer = () => (reply === undefined ? { status: 200, body: {} } : { status: 400, body: reply })
      const { client, connection } = await open({ ...usual(), ...more })
      await assert.rejects(client.list(ConfigMaps), { name: 'ConfigError', message })
      connection.close()
    })
  }

  it('requires an issuer and a client ID', async () => {
    await assert.rejects(open({ 'client-id': 'me' }), { message: 'Must provide idp-issuer-url' })
    await assert.rejects(open({ 'idp-issuer-url': issuer }), { message: 'Must provide client-id' })
  })
})
