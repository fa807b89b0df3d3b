/** The machines of a new cluster as rows of fields. */
import type { VNode } from 'preact'

import { type MachineDraft, NEW_MACHINE, type Role, ROLES } from './cluster-file.ts'
import { ROLE_TITLES } from './machines.ts'

export interface MachineRowsProps {
  readonly machines: readonly MachineDraft[]
  readonly onChange: (machines: readonly MachineDraft[]) => void
}

export function MachineRows({ machines, onChange }: MachineRowsProps): VNode {
  const set = (at: number, change: Partial<MachineDraft>): void =>
    onChange(machines.map((machine, own) => (own === at ? { ...machine, ...change } : machine)))
  return (
    <div class="machine-rows">
      {machines.map((machine, at) => (
        <MachineRow
          key={at}
          machine={machine}
          number={at + 1}
          change={(change) => set(at, change)}
          remove={machines.length > 1 ? () => onChange(machines.filter((_one, own) => own !== at)) : undefined}
        />
      ))}
      <div class="form-actions">
        <button type="button" onClick={() => onChange([...machines, { ...NEW_MACHINE, roles: ['worker'] }])}>
          Add a machine
        </button>
      </div>
    </div>
  )
}

interface MachineRowProps {
  readonly machine: MachineDraft
  readonly number: number
  readonly change: (change: Partial<MachineDraft>) => void
  /** Undefined: the last machine stays. */
  readonly remove: (() => void) | undefined
}

function MachineRow({ machine, number, change, remove }: MachineRowProps): VNode {
  const { way, roles } = machine
  const toggle = (role: Role, isOn: boolean): void =>
    change({ roles: ROLES.filter((one) => (one === role ? isOn : roles.includes(one))) })
  return (
    <fieldset class="machine-row">
      <legend>{`Machine ${number}`}</legend>
      <Text label="Address" value={machine.address} set={(address) => change({ address })} />
      <Text
        label={way === 'agent' ? 'Name of its agent' : 'Name (optional)'}
        value={machine.name}
        set={(name) => change({ name })}
      />
      <label class="field">
        The server reaches it by
        <select value={way} onChange={({ currentTarget }) => change({ way: currentTarget.value as 'ssh' | 'agent' })}>
          <option value="ssh">SSH</option>
          <option value="agent">its agent</option>
        </select>
      </label>
      {way === 'ssh' && (
        <>
          <Text label="SSH user" value={machine.user} set={(user) => change({ user })} />
          <Text label="SSH port (22)" value={machine.port} set={(port) => change({ port })} />
        </>
      )}
      <div class="machine-roles" role="group" aria-label={`Roles of machine ${number}`}>
        {ROLES.map((role) => (
          <label key={role}>
            <input
              type="checkbox"
              checked={roles.includes(role)}
              onChange={({ currentTarget }) => toggle(role, currentTarget.checked)}
            />{' '}
            {ROLE_TITLES[role]}
          </label>
        ))}
        {remove && (
          <button type="button" class="quiet" onClick={remove}>
            Remove machine {number}
          </button>
        )}
      </div>
    </fieldset>
  )
}

interface TextProps {
  readonly label: string
  readonly value: string
  readonly set: (value: string) => void
}

function Text({ label, value, set }: TextProps): VNode {
  return (
    <label class="field">
      {label}
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </label>
  )
}
