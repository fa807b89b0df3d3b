/** The account of the user: name, groups, password and sessions. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { loadSession, session } from '../browser/session.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { CopyButton } from '../parts/copy-button.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { LastUse } from './tokens-view.tsx'
import { changePassword, deleteToken, loadTokens, logOut, type OwnToken } from './tokens.ts'

export function AccountView(): VNode {
  const sessions = useLoaded('sessions', (signal) => loadTokens('session', signal))
  return (
    <div class="boxes">
      <Identity />
      <Password done={sessions.reload} />
      <section class="box box-wide">
        <h2>Sessions</h2>
        <p class="muted">Each browser in which you are logged in has one.</p>
        <LoadedView of={sessions} name="sessions">
          {(found) => <SessionTable sessions={found} reload={sessions.reload} />}
        </LoadedView>
      </section>
    </div>
  )
}

function Identity(): VNode {
  const { name = '', username = '', displayName = '', groups = [], isAdministrator } = session.value?.user ?? {}
  const rows: readonly (readonly [label: string, value: VNode | string])[] = [
    ['Username', username],
    ['Name', displayName],
    [
      'Id',
      <>
        {name} <CopyButton text={name} name="the id" />
      </>,
    ],
    ['Groups', groups.join('\n') || 'none'],
    ...(isAdministrator === true ? ([['Rights', 'You are an administrator of this server']] as const) : []),
  ]
  return (
    <section class="box">
      <h2>You</h2>
      <dl class="fields">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd class="text">{typeof value === 'string' ? <bdi>{value}</bdi> : value}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">Owners of clusters use the id to make you a member. Clusters know you by it.</p>
    </section>
  )
}

function Password({ done }: { readonly done: () => void }): VNode {
  /** Each change gets empty fields. */
  const [changes, setChanges] = useState(0)
  return (
    <section class="box">
      <h2>Password</h2>
      <p class="muted">For log-ins with a password of this server. Passwords of identity providers change there.</p>
      <Form
        key={changes}
        label="Change the password"
        action="Change the password"
        submit={async ({ current = '', password = '', again = '' }) => {
          if (password !== again) throw new RequestError({ code: 400, message: 'The new passwords differ' })
          await changePassword(current, password)
          setChanges(changes + 1)
          done()
        }}
      >
        <Field name="current" label="Current password" type="password" autocomplete="current-password" />
        <Field name="password" label="New password" type="password" autocomplete="new-password" />
        <Field name="again" label="New password again" type="password" autocomplete="new-password" />
      </Form>
      <p role="status" class="words words-good">
        {changes > 0 ? 'The password was changed. All other sessions have ended.' : ''}
      </p>
    </section>
  )
}

interface SessionTableProps {
  readonly sessions: readonly OwnToken[]
  readonly reload: () => void
}

function SessionTable({ sessions, reload }: SessionTableProps): VNode {
  const [dialog, setDialog] = useState<'everywhere' | OwnToken>()
  const close = (): void => {
    setDialog(undefined)
    reload()
  }
  return (
    <>
      <PlainTable
        label="Sessions"
        columns={['Session', 'Began', 'Last used', 'Action']}
        rows={sessions}
        keyOf={({ name }) => name}
        cells={(one) => [
          one.isCurrent ? `${one.name} (this one)` : one.name,
          one.createdAt === undefined ? '' : <AgeText time={one.createdAt} />,
          <LastUse key="use" token={one} />,
          one.isCurrent ? undefined : (
            <button key="end" type="button" class="quiet" onClick={() => setDialog(one)}>
              End
            </button>
          ),
        ]}
      />
      <div class="form-actions">
        <button type="button" onClick={() => void leave(false)}>
          Log out
        </button>
        <button type="button" class="danger" onClick={() => setDialog('everywhere')}>
          Log out everywhere
        </button>
      </div>
      {dialog !== undefined && <SessionDialog dialog={dialog} close={close} />}
    </>
  )
}

async function leave(everywhere: boolean): Promise<void> {
  await logOut(everywhere)
  await loadSession()
}

interface SessionDialogProps {
  /** A session: to be ended. */
  readonly dialog: 'everywhere' | OwnToken
  readonly close: () => void
}

function SessionDialog({ dialog, close }: SessionDialogProps): VNode {
  if (dialog === 'everywhere')
    return (
      <ConfirmDialog title="Log out everywhere" action="Log out" run={() => leave(true)} close={close}>
        <p>All your sessions end, this one too. Your API tokens stay: delete them on their page.</p>
      </ConfirmDialog>
    )
  return (
    <ConfirmDialog
      title={`End the session ${dialog.name}`}
      action="End"
      run={() => deleteToken(dialog.name)}
      close={close}
    >
      <p>The browser that uses it must log in again.</p>
    </ConfirmDialog>
  )
}
