/** Edits the labels of an object as lines of key=value. */
import type { VNode } from 'preact'

import { RequestError } from '../api/request.ts'
import { Form } from '../forms/form.tsx'
import type { ActionFormProps } from './action-form.ts'
import { parseLabels, setLabels } from './plans.ts'
import { runRequest } from './run-action.ts'

export function LabelsForm({ cluster, kind, object, close, done }: ActionFormProps): VNode {
  const { labels = {} } = object.metadata
  const text = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n')
  const submit = async ({ labels: written = '' }: Readonly<Record<string, string>>): Promise<void> => {
    await runRequest(cluster, setLabels({ kind, object }, parsed(written)))
    done()
  }
  return (
    <Form label="Labels" action="Set the labels" submit={submit} cancel={close}>
      <label class="field">
        Labels, a line each: key=value
        <textarea name="labels" rows={8} spellcheck={false} defaultValue={text} />
      </label>
    </Form>
  )
}

/** The form shows errors of requests. */
function parsed(text: string): Readonly<Record<string, string>> {
  try {
    return parseLabels(text)
  } catch (error) {
    throw new RequestError({ code: 400, message: error instanceof Error ? error.message : String(error) })
  }
}
