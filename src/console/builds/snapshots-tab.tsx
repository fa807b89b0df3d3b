/** The snapshots of etcd: list, take, restore, schedule; and the rotation of certificates and of the encryption key. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { sendForJson } from '../api/request.ts'
import { buildRoute } from '../operations/operation-requests.ts'
import { AgeText } from '../parts/age-text.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { bytesText } from '../parts/sizes.ts'
import { useLoaded } from '../parts/use-loaded.ts'
import { ScheduleBox } from './schedule-box.tsx'
import { RestoreDialog, TakeDialog } from './snapshot-dialogs.tsx'
import { groupSnapshots, type Snapshot, type SnapshotRow } from './snapshots.ts'

export interface SnapshotsTabProps {
  readonly cluster: KubeObject & { readonly spec: { readonly displayName: string } }
}

export function SnapshotsTab({ cluster }: SnapshotsTabProps): VNode {
  const name = cluster.metadata.name ?? ''
  const [isTaking, setIsTaking] = useState(false)
  const loaded = useLoaded(name, (signal) =>
    sendForJson<{ items: readonly SnapshotRow[] }>(buildRoute(name, 'snapshots'), { signal }),
  )
  return (
    <>
      <div class="yaml-bar">
        <button type="button" class="primary" onClick={() => setIsTaking(true)}>
          Take a snapshot …
        </button>
        <button type="button" onClick={loaded.reload}>
          Read the machines again
        </button>
      </div>
      <LoadedView of={loaded} name="snapshots">
        {({ items }) => <SnapshotTable cluster={cluster} snapshots={groupSnapshots(items)} />}
      </LoadedView>
      <div class="spaced" />
      <ScheduleBox cluster={name} />
      {isTaking && <TakeDialog cluster={name} close={() => setIsTaking(false)} />}
    </>
  )
}

interface SnapshotTableProps extends SnapshotsTabProps {
  readonly snapshots: readonly Snapshot[]
}

function SnapshotTable({ cluster, snapshots }: SnapshotTableProps): VNode {
  const [restored, setRestored] = useState<Snapshot>()
  if (snapshots.length === 0)
    return <Notice title="There are no snapshots" text="Take one, or switch the schedule on." />
  return (
    <>
      <PlainTable
        label="Snapshots"
        columns={['Name', 'Taken', 'Size', 'Revision', 'On', 'Problem', 'Restore']}
        rows={snapshots}
        keyOf={({ name }) => name}
        cells={(snapshot) => [
          <bdi>{snapshot.name}</bdi>,
          snapshot.takenAtMs === undefined ? (
            ''
          ) : (
            <>
              <AgeText time={snapshot.takenAtMs} /> ago
            </>
          ),
          bytesText(snapshot.sizeBytes),
          snapshot.revision,
          snapshot.places.join(', '),
          <span class="words words-bad">{snapshot.problems.join('\n')}</span>,
          snapshot.isComplete && (
            <button
              type="button"
              class="danger"
              aria-label={`Restore ${snapshot.name}`}
              onClick={() => setRestored(snapshot)}
            >
              Restore …
            </button>
          ),
        ]}
      />
      {restored && <RestoreDialog cluster={cluster} snapshot={restored} close={() => setRestored(undefined)} />}
    </>
  )
}
