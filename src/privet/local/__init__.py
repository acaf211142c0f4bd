"""Local differential privacy: everybody randomizes their own answer, and nobody has to be trusted."""

from __future__ import annotations

from privet.local.additive_noise import LocalGaussian, LocalLaplace
from privet.local.duchi import Duchi
from privet.local.endpoint import Endpoint as Endpoint
from privet.local.estimates import AnswerEstimate, answer_estimates, estimates_document, require_reports
from privet.local.hadamard import HadamardResponse
from privet.local.hashing import LocalHashing
from privet.local.live import live_endpoint, survey_endpoint
from privet.local.mean import Mean, MeanMechanism, ReportSum
from privet.local.multiple_questions import SampledQuestions, SplitQuestions
from privet.local.oracle import FrequencyOracle, PureOracle, Tally, collect_reports
from privet.local.page import questionnaire_page
from privet.local.piecewise import Piecewise
from privet.local.questionnaire import Questionnaire, SurveyQuestion, read_questionnaire
from privet.local.randomized_response import GeneralizedRandomizedResponse
from privet.local.randomizer import ONE_REPORT
from privet.local.randomizer import Randomizer as Randomizer
from privet.local.rappor import Rappor
from privet.local.report_files import ReportLine, append_report, merge_reports, read_reports, report_lines
from privet.local.reports import Collection, answer_of, report_on
from privet.local.shares import Shares
from privet.local.survey_design import QuestionDesign, design_survey, draft_questionnaire
from privet.local.table import MEANS, ORACLES, best_mean, best_oracle
from privet.local.unary import OptimizedUnary, SymmetricUnary

__all__ = [
    "MEANS",
    "ONE_REPORT",
    "ORACLES",
    "AnswerEstimate",
    "Collection",
    "Duchi",
    "FrequencyOracle",
    "GeneralizedRandomizedResponse",
    "HadamardResponse",
    "LocalGaussian",
    "LocalHashing",
    "LocalLaplace",
    "Mean",
    "MeanMechanism",
    "OptimizedUnary",
    "Piecewise",
    "PureOracle",
    "QuestionDesign",
    "Questionnaire",
    "Rappor",
    "ReportLine",
    "ReportSum",
    "SampledQuestions",
    "Shares",
    "SplitQuestions",
    "SurveyQuestion",
    "SymmetricUnary",
    "Tally",
    "answer_estimates",
    "answer_of",
    "append_report",
    "best_mean",
    "best_oracle",
    "collect_reports",
    "design_survey",
    "draft_questionnaire",
    "estimates_document",
    "live_endpoint",
    "merge_reports",
    "questionnaire_page",
    "read_questionnaire",
    "read_reports",
    "report_lines",
    "report_on",
    "require_reports",
    "survey_endpoint",
]
