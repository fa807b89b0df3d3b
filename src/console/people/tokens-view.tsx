/** The API tokens of the user. The server shows the text of a token only once, when it is created. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { session } from '../browser/session.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { CreateTokenDialog } from './create-token.tsx'
import { deleteToken, loadTokens, type OwnToken } from './tokens.ts'

export function TokensView(): VNode {
  const tokens = useLoaded('tokens', (signal) => loadTokens('api', signal))
  return (
    <LoadedView of={tokens} name="API tokens">
      {(found) => <TokenTable tokens={found} reload={tokens.reload} />}
    </LoadedView>
  )
}

interface TokenTableProps {
  readonly tokens: readonly OwnToken[]
  readonly reload: () => void
}

function TokenTable({ tokens, reload }: TokenTableProps): VNode {
  const [dialog, setDialog] = useState<'create' | OwnToken>()
  const close = (): void => {
    setDialog(undefined)
    reload()
  }
  return (
    <>
      <div class="page-head">
        <span class="muted">Programs use them in place of your password, with your rights.</span>
        <span class="bar-space" />
        <button type="button" class="primary" onClick={() => setDialog('create')}>
          Create a token
        </button>
      </div>
      {tokens.length === 0 ? (
        <Notice title="You have no API tokens" text="Kubeconfigs that you download contain one, too." />
      ) : (
        <PlainTable
          label="API tokens"
          columns={['Description', 'Id', 'Works for', 'May', 'Created', 'Ends', 'Last used', 'Action']}
          rows={tokens}
          keyOf={({ name }) => name}
          cells={(token) => cellsOf(token, () => setDialog(token))}
        />
      )}
      {dialog === 'create' && <CreateTokenDialog close={close} />}
      {typeof dialog === 'object' && (
        <ConfirmDialog
          title={`Delete the token ${dialog.description ?? dialog.name}`}
          action="Delete"
          run={() => deleteToken(dialog.name)}
          close={close}
        >
          <p>The server accepts no request with it any more.</p>
        </ConfirmDialog>
      )}
    </>
  )
}

function cellsOf(token: OwnToken, remove: () => void): readonly (VNode | string)[] {
  const { name, description = '', cluster, readOnly, createdAt, expiresAt } = token
  return [
    <bdi key="description" class="text">
      {description}
    </bdi>,
    name,
    cluster === undefined ? 'all clusters' : nameOfCluster(cluster),
    readOnly ? 'only read' : 'all that you may',
    createdAt === undefined ? '' : <AgeText time={createdAt} />,
    <time key="end" dateTime={expiresAt}>
      {new Date(expiresAt).toLocaleString()}
    </time>,
    <LastUse key="use" token={token} />,
    <button key="delete" type="button" class="quiet" aria-label={`Delete ${description || name}`} onClick={remove}>
      Delete
    </button>,
  ]
}

export function LastUse({ token: { lastUsedAt, lastAddress } }: { readonly token: OwnToken }): VNode {
  if (lastUsedAt === undefined) return <>never</>
  return (
    <>
      <AgeText time={lastUsedAt} /> ago{lastAddress === undefined ? '' : ` from ${lastAddress}`}
    </>
  )
}

function nameOfCluster(name: string): string {
  return session.value?.clusters?.find((one) => one.name === name)?.displayName ?? name
}
