/**
 * Runs the npm package oidc-provider as an OpenID provider on 127.0.0.1. npm installs it once into the user's cache
 * folder, not into the repository.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import type { CertificateFiles } from './certificate.ts'

const VERSION = '9.13.3'
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', `oidc-provider-${VERSION}`)

interface OidcProvider {
  callback(): RequestListener
}

type OidcProviderClass = new (issuer: string, configuration: object) => OidcProvider

export interface OpenIdProvider extends AsyncDisposable {
  readonly issuer: string
}

export const CLIENT = { id: 'hyperkube', secret: 'secret of the client' }
/** By account; people log in with the name and any password. */
const GROUPS: Readonly<Record<string, readonly string[]>> = { mary: ['devs', 'staff'], peter: [] }

export async function startOpenIdProvider(redirectUri: string, files: CertificateFiles): Promise<OpenIdProvider> {
  const Provider = await install()
  const tls = { cert: readFileSync(files.certificateFile), key: readFileSync(files.keyFile) }
  let serve: RequestListener = () => undefined
  const server = createServer(tls, (request, response) => serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  serve = new Provider(issuer, configuration(redirectUri)).callback()
  return {
    issuer,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function install(): Promise<OidcProviderClass> {
  const entry = join(FOLDER, 'node_modules', 'oidc-provider', 'lib', 'index.js')
  if (!existsSync(entry)) {
    mkdirSync(FOLDER, { recursive: true })
    writeFileSync(join(FOLDER, 'package.json'), '{ "private": true }\n')
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `oidc-provider@${VERSION}`]
    const { status } = spawnSync('npm', args, { cwd: FOLDER, stdio: 'inherit' })
    if (status !== 0) throw new Error(`oidc-provider ${VERSION} cannot be installed`)
  }
  return ((await import(pathToFileURL(entry).href)) as { readonly default: OidcProviderClass }).default
}

function configuration(redirectUri: string): object {
  const claimsOf = (sub: string): object => ({
    sub,
    preferred_username: sub,
    name: `${sub} the user`,
    groups: GROUPS[sub],
  })
  return {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri] }],
    pkce: { required: () => true },
    claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'groups'] },
    // Otherwise the groups would be at the userinfo endpoint only.
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: true } },
    cookies: { keys: ['a key of the judge'] },
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => claimsOf(sub) }),
  }
}
