/** Log-in with a password or with an identity provider, and the change of an initial password. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { send, sendForJson } from '../api/request.ts'
import { loadSession, type LoginProvider, session } from '../browser/session.ts'
import { Field, Form } from '../forms/form.tsx'

interface Credentials {
  readonly username: string
  readonly password: string
}

export function LoginPage(): VNode {
  return (
    <main class="login">
      <h1>hyperkube</h1>
      <LoginForm />
    </main>
  )
}

export function LoginForm(): VNode {
  const [initial, setInitial] = useState<Credentials>()
  const mustChange = session.value?.user?.mustChangePassword === true
  if (mustChange || initial !== undefined) return <NewPassword initial={initial} />
  const providers = session.value?.providers ?? []
  const withPassword = providers.filter(({ type }) => type !== 'oidc')
  const logIn = async ({ username = '', password = '', provider = 'local' }: Fields): Promise<void> => {
    const body = { username, password, ...(provider !== 'local' && { provider }) }
    const { mustChangePassword } = await sendForJson<{ mustChangePassword: boolean }>('/v3-public/login', {
      method: 'POST',
      body,
    })
    if (mustChangePassword) setInitial({ username, password })
    else await loadSession()
  }
  return (
    <>
      <Form label="Log in" action="Log in" submit={logIn}>
        {withPassword.length > 1 && <ProviderSelect providers={withPassword} />}
        <Field name="username" label="Username" autocomplete="username" />
        <Field name="password" label="Password" type="password" autocomplete="current-password" />
      </Form>
      {providers
        .filter(({ type }) => type === 'oidc')
        .map(({ name, displayName }) => (
          <a key={name} class="login-provider" href={loginUrl(name)}>
            Log in with {displayName}
          </a>
        ))}
    </>
  )
}

type Fields = Readonly<Record<string, string>>

function ProviderSelect({ providers }: { readonly providers: readonly LoginProvider[] }): VNode {
  return (
    <label class="field">
      Account of
      <select name="provider">
        {providers.map(({ name, displayName }) => (
          <option key={name} value={name}>
            {displayName}
          </option>
        ))}
      </select>
    </label>
  )
}

function loginUrl(provider: string): string {
  const returnTo = globalThis.location.pathname + globalThis.location.search
  return `/v3-public/oidc/${encodeURIComponent(provider)}/login?returnTo=${encodeURIComponent(returnTo)}`
}

function NewPassword({ initial }: { readonly initial: Credentials | undefined }): VNode {
  const change = async ({ current = initial?.password ?? '', password = '' }: Fields): Promise<void> => {
    await send('/v3/me/password', { method: 'POST', body: { current, password } })
    await loadSession()
  }
  return (
    <>
      <p>Your first password is for one log-in only. Choose another one.</p>
      <Form label="Choose a password" action="Save the password" submit={change}>
        {initial === undefined && (
          <Field name="current" label="Current password" type="password" autocomplete="current-password" />
        )}
        <Field name="password" label="New password" type="password" autocomplete="new-password" />
      </Form>
    </>
  )
}
