/** One object: head, tabs, and the tab of the address. A watch keeps all of it fresh. */
import type { ComponentType, VNode } from 'preact'

import type { Event } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { useMay } from '../access/use-may.ts'
import { ActionBar } from '../actions/action-bar.tsx'
import { clusterPath, listPath, objectPath } from '../api/kinds.ts'
import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import type { YamlEditorProps } from '../editor/yaml-editor.tsx'
import { ObjectLogs } from '../logs/object-logs.tsx'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { type LiveObjects, useLive, useLiveObject } from '../objects/live.ts'
import { Freshness, ObjectHead } from '../objects/object-head.tsx'
import { TabBar } from '../objects/tab-bar.tsx'
import { Lazy } from '../parts/lazy.tsx'
import { Notice } from '../parts/notice.tsx'
import { RelatedView } from '../related/related-view.tsx'
import type { Page } from '../routing/location.ts'
import { SummaryView } from '../summary/summary-view.tsx'
import { ObjectShell } from '../terminal/object-shell.tsx'
import { eventQuery } from '../timeline/belongs.ts'
import { EventsView } from '../timeline/events-view.tsx'
import { useWhy } from '../why/use-why.ts'

export type ObjectPageProps = Omit<Extract<Page, { page: 'object' }>, 'page'>

export function ObjectPage(props: ObjectPageProps): VNode {
  const { cluster, kind, namespace, name } = props
  const list = clusterPath(cluster, listPath(kind, namespace))
  const own = clusterPath(cluster, objectPath(kind, { namespace, name }))
  const { object, deletedAtMs, state } = useLiveObject(list, own, name)
  const query = object === undefined ? undefined : eventQuery(object)
  const events = useLive(query && clusterPath(cluster, query.path), query?.keep)
  if (object === undefined)
    return <Missing {...props} message={state.type === 'loading' ? undefined : messageOf(state)} />
  const isOld = deletedAtMs !== undefined || state.type === 'stale'
  return (
    <section class="page">
      <ObjectHead cluster={cluster} object={object}>
        {deletedAtMs === undefined && <ActionBar cluster={cluster} kind={kind} object={object} isOff={isOld} />}
      </ObjectHead>
      <Freshness state={state} deletedAtMs={deletedAtMs} />
      <TabBar {...props} objectKind={kubernetesKind(object)} />
      <div class={isOld ? 'is-old' : undefined}>
        <Content {...props} {...{ object, events, own }} isGone={deletedAtMs !== undefined} />
      </div>
    </section>
  )
}

interface ContentProps extends ObjectPageProps {
  readonly object: KubeObject
  readonly events: LiveObjects
  /** The path of the object. */
  readonly own: string
  readonly isGone: boolean
}

async function loadYaml(): Promise<ComponentType<YamlEditorProps>> {
  const { YamlEditor } = await import('../editor/yaml-editor.tsx')
  return YamlEditor
}

function Content({ cluster, kind, tab, object, events, own, isGone }: ContentProps): VNode {
  const mayEdit = useMay(cluster, { verb: 'patch', kind, object })
  const causes = useWhy(cluster, object, events.objects as readonly Event[])
  switch (tab) {
    case '':
      return <SummaryView cluster={cluster} object={object} causes={causes} />
    case 'yaml':
      return <Lazy load={loadYaml} props={{ cluster, object, path: own, mayEdit: mayEdit && !isGone }} />
    case 'logs':
      return <ObjectLogs cluster={cluster} object={object} />
    case 'shell':
      return <ObjectShell cluster={cluster} object={object} />
    case 'events':
      return <EventsView cluster={cluster} live={events} />
    case 'related':
      return <RelatedView cluster={cluster} object={object} pulse={String(events.objects.length)} />
    default:
      return <Notice title="This tab does not exist" text={`Objects have no tab "${tab}".`} />
  }
}

function messageOf(state: LiveObjects['state']): string {
  if (state.type === 'failed' || state.type === 'stale') return state.message
  return ''
}

type MissingProps = ObjectPageProps & { readonly message: string | undefined }

/** Loading, refused, or not there. */
function Missing({ cluster, kind, namespace, name, message }: MissingProps): VNode {
  if (message === undefined) return <p class="loading">{`Loading ${name} …`}</p>
  const known = kindsOfCluster(cluster).value.kinds.find(
    ({ plural, group }) => plural === kind.plural && group === kind.group,
  )
  const what = `${known?.kind ?? kind.plural} ${name}`
  if (message !== '') return <Notice title={`${what} cannot be shown`} text={message} />
  const where = namespace === '' ? 'in this cluster' : `in namespace ${namespace}`
  return <Notice title={`There is no ${what} ${where}`} text="If somebody creates it, it appears here at once." />
}
