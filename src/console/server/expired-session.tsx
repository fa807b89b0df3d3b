/** The dialog over the page when the session has ended. What the user has typed stays. */
import type { VNode } from 'preact'
import { useEffect } from 'preact/hooks'

import { isSessionExpired, loadSession, session } from '../browser/session.ts'
import { Dialog } from '../forms/dialog.tsx'
import { reconnectLists } from '../lists/list-client.ts'
import { LoginForm } from './login-page.tsx'

export function ExpiredSession(): VNode | null {
  const isExpired = isSessionExpired.value
  useEffect(() => {
    if (!isExpired) reconnectLists()
  }, [isExpired])
  if (!isExpired) return null
  const check = (): void => void loadSession().catch(() => undefined)
  return (
    <Dialog title="Your session has ended" close={check}>
      {session.value?.mode === 'many-clusters' ? (
        <LoginForm />
      ) : (
        <>
          <p>
            {'Open the link that '}
            <code>hyperkube status</code>
            {' prints in another tab, then come back.'}
          </p>
          <button type="button" class="primary" onClick={check}>
            Go on
          </button>
        </>
      )}
    </Dialog>
  )
}
