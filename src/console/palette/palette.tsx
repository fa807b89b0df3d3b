/** The command palette (Ctrl-K or `:`): goes to kinds, clusters and pages by a few letters. */
import type { VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import { session } from '../browser/session.ts'
import { switchTheme } from '../browser/theme.ts'
import { go, location } from '../routing/router.tsx'
import { type Command, commandsOf, fitting, searchCommands, type Surroundings } from './commands.ts'

export interface PaletteProps {
  readonly close: () => void
  readonly showKeys: () => void
}

const MAX_SHOWN = 12

export function Palette({ close, showKeys }: PaletteProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [selected, setSelected] = useState(0)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const around = surroundings()
  const commands = [...fitting(commandsOf(around), text, MAX_SHOWN), ...searchCommands(text, around)]
  const run = (command: Command | undefined): void => {
    if (command === undefined) return
    close()
    const { action } = command
    if (action.type === 'theme') switchTheme()
    else if (action.type === 'keys') showKeys()
    else go(action.page, action.query)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) setSelected((selected + step + commands.length) % Math.max(1, commands.length))
    else if (event.key === 'Enter') run(commands[selected])
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} class="palette" aria-label="Go to" onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-commands"
        aria-activedescendant={commands.length > 0 ? `palette-${selected}` : undefined}
        aria-label="Kind, cluster or page, and a namespace"
        placeholder="pods kube-system"
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value)
          setSelected(0)
        }}
        onKeyDown={onKeyDown}
      />
      <CommandList commands={commands} selected={selected} run={run} />
    </dialog>
  )
}

interface CommandListProps {
  readonly commands: readonly Command[]
  readonly selected: number
  readonly run: (command: Command) => void
}

function CommandList({ commands, selected, run }: CommandListProps): VNode {
  return (
    <ul id="palette-commands" role="listbox" aria-label="Commands">
      {commands.map((command, at) => (
        <li
          key={`${command.title} ${command.hint}`}
          id={`palette-${at}`}
          role="option"
          aria-selected={at === selected}
          onClick={() => run(command)}
        >
          <span>{command.title}</span>
          <span class="muted">{command.hint}</span>
        </li>
      ))}
      {commands.length === 0 && <li class="muted">Nothing fits.</li>}
    </ul>
  )
}

function surroundings(): Surroundings {
  const { page, query } = location.value
  const cluster = 'cluster' in page ? page.cluster : undefined
  return {
    cluster,
    clusters: session.value?.clusters ?? [],
    kinds: cluster === undefined ? [] : kindsOfCluster(cluster).value.kinds,
    namespace: query['ns'] ?? '',
    user: session.value?.mode === 'many-clusters' ? session.value.user : null,
  }
}
