/** The buttons of an object's actions: those that make sense and that the user may do. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { useMayEach } from '../access/use-may.ts'
import { RequestError } from '../api/request.ts'
import { ActionDialog } from './action-dialog.tsx'
import type { Action, Target } from './action.ts'
import { actionsFor } from './actions.ts'
import { runRequest, surroundings } from './run-action.ts'

export interface ActionBarProps extends Target {
  readonly cluster: string
  /** The cluster cannot be reached. An open dialog stays, with what was typed. */
  readonly isOff: boolean
}

export function ActionBar({ cluster, kind, object, isOff }: ActionBarProps): VNode {
  const offered = useOffered({ cluster, kind, object })
  const [opened, setOpened] = useState<Action>()
  const [said, setSaid] = useState<{ readonly text: string; readonly isError: boolean }>({ text: '', isError: false })
  const start = async (action: Action): Promise<void> => {
    setSaid({ text: '', isError: false })
    if (action.dialog !== undefined || action.plan === undefined) return setOpened(action)
    try {
      await runRequest(cluster, action.plan({ kind, object }, surroundings()))
      setSaid({ text: action.done, isError: false })
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      setSaid({ text: error.message, isError: true })
    }
  }
  return (
    <div class="actions">
      {offered.map((action) => (
        <button
          key={action.name}
          type="button"
          disabled={isOff}
          class={action.isDangerous === true ? 'danger' : undefined}
          onClick={() => void start(action)}
        >
          {action.title}
        </button>
      ))}
      <span role="status" class={said.isError ? 'words words-bad' : 'muted'}>
        {said.text}
      </span>
      {opened !== undefined && (
        <ActionDialog
          {...{ cluster, kind, object }}
          action={opened}
          close={() => setOpened(undefined)}
          done={() => {
            setOpened(undefined)
            setSaid({ text: opened.done, isError: false })
          }}
        />
      )}
    </div>
  )
}

/** The actions that make sense for the object and that the user may do. */
function useOffered({ cluster, kind, object }: Omit<ActionBarProps, 'isOff'>): readonly Action[] {
  const actions = actionsFor(object)
  const rights = actions.flatMap((action) => action.rights.map((right) => ({ action, right })))
  const other = elsewhere(object.metadata.namespace)
  const wanted = rights.map(({ right }) => ({
    verb: right.verb,
    subresource: right.subresource,
    kind: right.kind ?? kind,
    object: right.kind === undefined ? object : other,
  }))
  const allowed = useMayEach(cluster, wanted)
  return actions.filter((action) => rights.every((one, at) => one.action !== action || allowed[at] === true))
}

/** Rights on other kinds are not about an object of this name. */
function elsewhere(namespace: string | undefined): { readonly metadata: { readonly namespace?: string } } {
  return { metadata: namespace === undefined ? {} : { namespace } }
}
