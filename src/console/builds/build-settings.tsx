/** The fields of a new cluster that are not in its file: name, template, SSH key, approval. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { sendForJson } from '../api/request.ts'
import { AreaField } from '../forms/area-field.tsx'
import { SelectField } from '../forms/choices.tsx'
import { Field } from '../forms/form.tsx'
import { LongText } from '../parts/long-text.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { type ClusterTemplate, TEMPLATES_PATH } from './templates.ts'

export function NameFields(): VNode {
  return (
    <>
      <Field name="displayName" label="Name" />
      <Field name="description" label="Description" isOptional />
      <TemplateField />
    </>
  )
}

function TemplateField(): VNode | null {
  const { value } = useLoaded(TEMPLATES_PATH, (signal) =>
    sendForJson<{ items: readonly ClusterTemplate[] }>(TEMPLATES_PATH, { signal }),
  )
  const [chosen, setChosen] = useState('')
  const templates = value?.items ?? []
  if (templates.length === 0) return null
  const template = templates.find(({ metadata }) => metadata.name === chosen)
  return (
    <>
      <SelectField
        name="template"
        label="Template"
        value={chosen}
        onChange={setChosen}
        choices={[
          { value: '', text: 'None' },
          ...templates.map(({ metadata, spec }) => ({ value: metadata.name ?? '', text: spec.displayName })),
        ]}
      />
      {template && (
        <p class="muted">
          {'The rest of the file comes from the template. The file below may have only: '}
          <LongText text={template.spec.editable.join(', ')} name="the editable paths" />
        </p>
      )}
    </>
  )
}

const KEYS = [
  { value: '', text: 'A new one, which I admit on the machines' },
  { value: 'own', text: 'One that the machines admit already' },
]

export function MoreFields(): VNode {
  const [key, setKey] = useState('')
  return (
    <>
      <h2>Access and approval</h2>
      <SelectField name="key" label="SSH key" choices={KEYS} value={key} onChange={setKey} />
      {key === 'own' && (
        <AreaField name="sshKey" label="Private key (PEM, without a passphrase). The server encrypts it." rows={5} />
      )}
      <SelectField
        name="approval"
        label="Plans of the cluster file"
        choices={[
          { value: 'Manual', text: 'wait for my approval' },
          { value: 'Automatic', text: 'are applied at once' },
        ]}
      />
    </>
  )
}

/** The fields of the request. */
export function settingsIn(form: HTMLFormElement): object {
  const data = new FormData(form)
  const text = (name: string): string => {
    const value = data.get(name)
    return typeof value === 'string' ? value : ''
  }
  const optional = ['description', 'template', 'approval', 'sshKey'] as const
  const given = optional.map((name) => [name, text(name)] as const).filter(([, value]) => value.trim() !== '')
  return { displayName: text('displayName'), ...Object.fromEntries(given) }
}
