/** The first tab of an object: why it is not ready, its summary, its pods, conditions, data, labels. */
import type { VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import { ForwardBox } from '../forward/forward-box.tsx'
import { UseView } from '../metrics/use-view.tsx'
import { podsOf } from '../objects/pods-of.ts'
import { RightsLinks } from '../rights/rights-links.tsx'
import type { Cause } from '../why/cause.ts'
import { WhyView } from '../why/why-view.tsx'
import { ConditionsView } from './conditions-view.tsx'
import { DataView } from './data-view.tsx'
import { MetadataView } from './metadata-view.tsx'
import { MoreSections } from './more-sections.tsx'
import { PodsView } from './pods-view.tsx'
import { SectionView } from './section-view.tsx'
import { summaryOf } from './summary.ts'
import { ValueTree } from './value-tree.tsx'

export interface SummaryViewProps {
  readonly cluster: string
  readonly object: KubeObject
  readonly causes: readonly Cause[]
}

export function SummaryView({ cluster, object, causes }: SummaryViewProps): VNode {
  const sections = summaryOf(object)
  const pods = podsOf(object)
  const hasData = object.apiVersion === 'v1' && (object.kind === 'ConfigMap' || object.kind === 'Secret')
  return (
    <div class="boxes">
      <WhyView cluster={cluster} causes={causes} />
      {sections?.map((section) => (
        <SectionView key={section.title} cluster={cluster} section={section} />
      ))}
      <UseView cluster={cluster} object={object} />
      <ForwardBox cluster={cluster} object={object} />
      <MoreSections cluster={cluster} object={object} version={object.metadata.resourceVersion ?? ''} />
      <RightsLinks cluster={cluster} object={object} />
      {pods !== undefined && <PodsView cluster={cluster} pods={pods} />}
      {hasData && <DataView object={object} />}
      <ConditionsView cluster={cluster} object={object} />
      {sections === undefined && <FieldTree object={object} />}
      <MetadataView object={object} />
    </div>
  )
}

/** All fields but those that the head and other parts of the page show. */
function FieldTree({ object }: { readonly object: KubeObject }): VNode {
  const shown = Object.entries(object).filter(([key]) => key !== 'apiVersion' && key !== 'kind' && key !== 'metadata')
  return (
    <section class="box box-wide tree">
      <h2>Fields</h2>
      {shown.map(([key, value]) => (
        <ValueTree key={key} name={key} value={value} />
      ))}
      {shown.length === 0 && <p class="muted">It has none.</p>}
    </section>
  )
}
