/** The schedule of snapshots, which is in the cluster file. */
import type { VNode } from 'preact'

import { RequestError, send, sendForJson } from '../api/request.ts'
import { CheckField } from '../forms/choices.tsx'
import { Field, Form } from '../forms/form.tsx'
import { buildRoute } from '../operations/operation-requests.ts'
import { LoadedView } from '../parts/loaded-view.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { go } from '../routing/router.tsx'
import { scheduleIn, textOfFile, withSchedule } from './cluster-file.ts'
import type { BuildShown } from './file-tab.tsx'

export function ScheduleBox({ cluster }: { readonly cluster: string }): VNode {
  const path = buildRoute(cluster, 'build')
  const build = useLoaded(path, (signal) => sendForJson<BuildShown>(path, { signal }))
  return (
    <section class="box">
      <h2>Schedule</h2>
      <LoadedView of={build} name="settings of the schedule">
        {(shown) => <ScheduleForm cluster={cluster} path={path} text={textOfFile(shown.file)} />}
      </LoadedView>
    </section>
  )
}

interface ScheduleFormProps {
  readonly cluster: string
  readonly path: string
  /** Of the cluster file. */
  readonly text: string
}

function ScheduleForm({ cluster, path, text }: ScheduleFormProps): VNode {
  const schedule = scheduleIn(text)
  if (schedule === undefined) return <p>The cluster file is no valid YAML.</p>
  const submit = async (fields: Readonly<Record<string, string>>): Promise<void> => {
    const { enabled, hours: hoursText = '', retention: keptText = '' } = fields
    const [hours, retention] = [Number(hoursText), Number(keptText)]
    if (!(hours > 0) || !Number.isInteger(retention) || retention < 1)
      throw new RequestError({ code: 400, message: 'The hours and the number of snapshots must be numbers from 1' })
    // Somebody may have changed the rest of the file meanwhile.
    const { file: now } = await sendForJson<BuildShown>(path)
    const file = withSchedule(textOfFile(now), { isOn: enabled !== undefined, hours, retention })
    await send(path, { method: 'PUT', body: { file, keepsSecrets: true } })
    go({ page: 'server-view', view: 'clusters', item: cluster }, { tab: 'operations' })
  }
  return (
    <Form label="Schedule of snapshots" action="Save the schedule" submit={submit}>
      <p class="muted">Saving changes the cluster file, and the server shows the plan.</p>
      <CheckField name="enabled" label="Machines with etcd take snapshots by themselves" isChecked={schedule.isOn} />
      <Field name="hours" label="Hours between snapshots" value={String(schedule.hours)} />
      <Field name="retention" label="Snapshots to keep" value={String(schedule.retention)} />
    </Form>
  )
}
