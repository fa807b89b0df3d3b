/** The dialog that creates or changes a role: its scope, what it inherits, and its rules. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import type { PolicyRule } from '#apis/rbac/v1.ts'

import { SelectField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { changeRole, createRole, type RoleSpec, type Scope, SCOPES, type ServerRole } from './roles.ts'
import { NO_TEXTS, ruleOf, type RuleTexts, textsOf } from './rule-fields.ts'

export interface RoleDialogProps {
  /** Undefined: a new one. */
  readonly role?: ServerRole
  readonly close: () => void
}

export function RoleDialog({ role, close }: RoleDialogProps): VNode {
  const { spec } = role ?? {}
  const [scope, setScope] = useState<Scope>(spec?.scope ?? 'project')
  const [rules, setRules] = useState(() => firstRules(spec?.rules ?? []))
  const title = role === undefined ? 'Create a role' : 'Change the role'
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        action={role === undefined ? 'Create' : 'Save'}
        cancel={close}
        submit={async (fields) => {
          const wanted = specOf(scope, rules, fields)
          const { scope: _, ...changes } = wanted
          if (role === undefined) await createRole(wanted)
          else await changeRole(role.metadata.name, changes)
          close()
        }}
      >
        {role === undefined && (
          <SelectField
            name="scope"
            label="For"
            choices={SCOPES.map(([value, text]) => ({ value, text }))}
            value={scope}
            onChange={(value) => setScope(value as Scope)}
          />
        )}
        <Field name="displayName" label="Name" value={spec?.displayName ?? ''} />
        <Field name="description" label="Description (optional)" value={spec?.description ?? ''} isOptional />
        {scope !== 'global' && (
          <Field
            name="inherits"
            label="All rights of this ClusterRole of the cluster, such as view (optional)"
            value={spec?.inherits ?? ''}
            isOptional
          />
        )}
        <RuleList rules={rules} hasPaths={scope !== 'project'} change={setRules} />
      </Form>
    </Dialog>
  )
}

/** A rule of the form. Its number identifies it while others come and go. */
interface DraftRule {
  readonly number: number
  readonly texts: RuleTexts
}

function firstRules(rules: readonly PolicyRule[]): readonly DraftRule[] {
  const texts = rules.length === 0 ? [NO_TEXTS] : rules.map((rule) => textsOf(rule))
  return texts.map((one, number) => ({ number, texts: one }))
}

function specOf(scope: Scope, drafts: readonly DraftRule[], fields: Readonly<Record<string, string>>): RoleSpec {
  const { displayName = '', description = '', inherits = '' } = fields
  return {
    scope,
    displayName,
    ...(description !== '' && { description }),
    ...(inherits !== '' && { inherits: inherits.trim() }),
    rules: drafts.flatMap(({ texts }) => ruleOf(texts) ?? []),
  }
}

interface RuleListProps {
  readonly rules: readonly DraftRule[]
  readonly hasPaths: boolean
  readonly change: (rules: readonly DraftRule[]) => void
}

function RuleList({ rules, hasPaths, change }: RuleListProps): VNode {
  const add = (): void => {
    const number = Math.max(0, ...rules.map((rule) => rule.number)) + 1
    change([...rules, { number, texts: NO_TEXTS }])
  }
  return (
    <>
      {rules.map((rule, at) => (
        <RuleFields
          key={rule.number}
          title={`Rule ${at + 1}`}
          texts={rule.texts}
          hasPaths={hasPaths}
          change={(texts) => change(rules.map((one) => (one === rule ? { ...one, texts } : one)))}
          remove={() => change(rules.filter((one) => one !== rule))}
        />
      ))}
      <button type="button" onClick={add}>
        Add a rule
      </button>
    </>
  )
}

interface RuleFieldsProps {
  readonly title: string
  readonly texts: RuleTexts
  readonly hasPaths: boolean
  readonly change: (texts: RuleTexts) => void
  readonly remove: () => void
}

const FIELDS: readonly (readonly [name: keyof RuleTexts, label: string, example: string])[] = [
  ['verbs', 'Verbs', 'get, list, watch'],
  ['resources', 'Resources', 'pods, pods/log'],
  ['apiGroups', 'API groups', 'core, apps'],
  ['resourceNames', 'Names (empty: all)', ''],
  ['nonResourceURLs', 'Or paths in place of resources', '/metrics'],
]

function RuleFields({ title, texts, hasPaths, change, remove }: RuleFieldsProps): VNode {
  return (
    <fieldset class="rule-fields">
      <legend>{title}</legend>
      {FIELDS.filter(([name]) => hasPaths || name !== 'nonResourceURLs').map(([name, label, example]) => (
        <label key={name} class="field">
          {label}
          <input
            type="text"
            value={texts[name]}
            placeholder={example}
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) => change({ ...texts, [name]: currentTarget.value })}
          />
        </label>
      ))}
      <button type="button" class="quiet" onClick={remove}>
        {`Remove ${title.toLowerCase()}`}
      </button>
    </fieldset>
  )
}
