/** The facts about the server: its address and version, its identity providers, the authority of its certificate. */
import type { VNode } from 'preact'

import { sendForJson } from '../api/request.ts'
import { type LoginProvider, session } from '../browser/session.ts'
import { now } from '../browser/time.ts'
import { readPem } from '../certificates/certificate.ts'
import { stateOf } from '../certificates/entries.ts'
import { CopyButton } from '../parts/copy-button.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { Link } from '../routing/router.tsx'

interface Settings {
  readonly version: string
  /** PEM. Empty: the certificate is from a public authority. */
  readonly authority: string
  readonly providers: readonly LoginProvider[]
}

async function loadSettings(signal: AbortSignal): Promise<Settings> {
  const setting = async (name: string): Promise<string> =>
    (await sendForJson<{ value: string }>(`/v3/settings/${name}`, { signal })).value
  const [version, authority, providers] = await Promise.all([
    setting('server-version'),
    setting('cacerts'),
    sendForJson<{ items: readonly LoginProvider[] }>('/v3-public/providers', { signal }),
  ])
  return { version, authority, providers: providers.items }
}

export function SettingsView(): VNode {
  const settings = useLoaded('settings', loadSettings)
  return (
    <LoadedView of={settings} name="settings">
      {({ version, authority, providers }) => (
        <div class="boxes">
          <Server version={version} />
          <Authority pem={authority} />
          <Providers providers={providers} />
        </div>
      )}
    </LoadedView>
  )
}

function Server({ version }: { readonly version: string }): VNode {
  const { origin } = globalThis.location
  return (
    <section class="box">
      <h2>Server</h2>
      <dl class="fields">
        <div>
          <dt>Address</dt>
          <dd class="text">
            {origin} <CopyButton text={origin} name="the address" />
          </dd>
        </div>
        <div>
          <dt>Version</dt>
          <dd>{version}</dd>
        </div>
      </dl>
      <p class="muted">
        {'Flags of '}
        <code>hyperkube server</code>
        {' set the address, the certificate and the store.'}
      </p>
    </section>
  )
}

function Authority({ pem }: { readonly pem: string }): VNode {
  return (
    <section class="box">
      <h2>Authority of the certificate</h2>
      {pem === '' ? (
        <p>The certificate is from an authority that clients know already.</p>
      ) : (
        <>
          <AuthorityFacts pem={pem} />
          <p>
            {'Clients that do not know this authority need the file, for example '}
            <code>curl --cacert hyperkube-ca.crt</code>.
          </p>
          <a href={`data:application/x-pem-file,${encodeURIComponent(pem)}`} download="hyperkube-ca.crt">
            Download hyperkube-ca.crt
          </a>
        </>
      )}
    </section>
  )
}

function AuthorityFacts({ pem }: { readonly pem: string }): VNode {
  return (
    <dl class="fields">
      {readPem(pem).map(({ id, facts }) => (
        <div key={id}>
          <dt>{facts === undefined ? 'Unreadable' : stateOf({ facts }, now()).text}</dt>
          <dd class="text">
            <bdi>{facts?.subject ?? ''}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Providers({ providers }: { readonly providers: readonly LoginProvider[] }): VNode {
  return (
    <section class="box box-wide">
      <h2>Ways to log in</h2>
      <PlainTable
        label="Ways to log in"
        columns={['Name', 'Type', 'Title']}
        rows={providers}
        keyOf={({ name }) => name}
        cells={({ name, type, displayName }) => [name, TYPES[type] ?? type, <bdi key="title">{displayName}</bdi>]}
      />
      {session.value?.user?.isAdministrator === true && (
        <p>
          Providers are objects of the kind AuthProvider:{' '}
          <Link to={{ page: 'list', cluster: 'local', kind: AUTH_PROVIDERS }}>show and change them</Link>
        </p>
      )}
    </section>
  )
}

const AUTH_PROVIDERS = { group: 'management.hyperkube.io', version: 'v1', plural: 'authproviders' } as const

const TYPES: Readonly<Record<string, string>> = {
  local: 'Passwords of this server',
  oidc: 'OpenID Connect',
  ldap: 'LDAP',
}
